import { describe } from 'vitest';
import { kernelsContract } from '../../../../test/contracts/kernels.js';
import { createReferenceKernels } from './reference.js';

kernelsContract('reference', createReferenceKernels);
describe('emulates AMX', { tags: 'verify' }, () =>
  kernelsContract('reference, in tiles', () => createReferenceKernels('amx-emulated')),
);
