import { describe } from 'vitest';
import { adapterContract } from '../../../../test/contracts/adapters.js';
import { baseContract } from '../../../../test/contracts/bases.js';
import { checkpointContract } from '../../../../test/contracts/checkpoints.js';
import { convolutions, decoderContract, features } from '../../../../test/contracts/decoder.js';
import { precisionContract } from '../../../../test/contracts/precision.js';
import { createReferenceKernels } from '../../tensor/reference/reference.js';
import { selectKernels } from '../../tensor/select.js';

decoderContract('reference', createReferenceKernels);
// Native kernels have all of these contracts in the daily tests.
describe('slow', { tags: 'verify' }, () => {
  decoderContract('reference', createReferenceKernels, { ...features, ...convolutions });
  adapterContract('reference', createReferenceKernels);
  baseContract('reference', createReferenceKernels);
  precisionContract('reference', createReferenceKernels);
});
checkpointContract('reference', createReferenceKernels);

const { kernels } = await selectKernels({ threads: 2 });
if (kernels.name !== 'reference') checkpointContract(kernels.name, () => kernels);
