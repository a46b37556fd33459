import { adapterContract } from '../../../../test/contracts/adapters.js';
import { baseContract } from '../../../../test/contracts/bases.js';
import { decoderContract } from '../../../../test/contracts/decoder.js';
import { precisionContract } from '../../../../test/contracts/precision.js';
import { createReferenceKernels } from '../../tensor/reference/reference.js';

decoderContract('reference', createReferenceKernels);
adapterContract('reference', createReferenceKernels);
baseContract('reference', createReferenceKernels);
precisionContract('reference', createReferenceKernels);
