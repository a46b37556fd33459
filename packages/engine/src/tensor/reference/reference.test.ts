// @module-tag verify
// The daily tests compare native and WebAssembly kernels with the reference in every operation.
import { kernelsContract } from '../../../../../test/contracts/kernels.js';
import { createReferenceKernels } from './reference.js';

kernelsContract('reference', createReferenceKernels);
kernelsContract('reference, in tiles', () => createReferenceKernels('amx-emulated'));
