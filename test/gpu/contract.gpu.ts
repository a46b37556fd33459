/** The whole contract, minutes of processor time on a driver in software: `npm run verify -- gpu-contract`. */
import { kernelsContract } from '../contracts/kernels.js';
import { mirroredKernels } from './mirrored-kernels.js';

kernelsContract('webgpu', mirroredKernels, { wgsl: true });
