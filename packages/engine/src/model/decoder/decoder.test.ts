import { describe } from 'vitest';
import { adapterContract, adaptersOfFamilies } from '../../../../../test/contracts/adapters.js';
import { baseContract } from '../../../../../test/contracts/bases.js';
import { checkpointContract } from '../../../../../test/contracts/checkpoints.js';
import { convolutions, decoderContract, extremes, features, plain } from '../../../../../test/contracts/decoder.js';
import { precisionContract } from '../../../../../test/contracts/precision.js';
import { createReferenceKernels } from '../../tensor/reference/reference.js';
import { selectKernels } from '../../tensor/select.js';

decoderContract('reference', createReferenceKernels, { plain });
// Native kernels have all of these contracts in the daily tests, and those in WebAssembly the first.
describe('slow', { tags: 'verify' }, () => {
  decoderContract('reference', createReferenceKernels, { ...extremes, ...features, ...convolutions });
  adapterContract('reference', createReferenceKernels);
  adapterContract('reference', createReferenceKernels, adaptersOfFamilies);
  baseContract('reference', createReferenceKernels);
  precisionContract('reference', createReferenceKernels);
});
checkpointContract('reference', createReferenceKernels);

const { kernels } = await selectKernels({ threads: 2 });
if (kernels.name !== 'reference') checkpointContract(kernels.name, () => kernels);
