import { kernelsContract } from '../../../test/contracts/kernels.js';
import { createReferenceKernels } from './reference.js';

kernelsContract('reference', createReferenceKernels);
kernelsContract('reference, in tiles', () => createReferenceKernels('amx-emulated'));
