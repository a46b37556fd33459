import { createReferenceKernels, type HostKernels } from '@drmas/engine/kernels';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { memoryContract } from '../contracts/kernels/memory.js';
import { kernelsAgree, kernelsEqual } from '../contracts/kernels.js';
import { mirroredKernels } from './mirrored-kernels.js';

let kernels: HostKernels;
beforeAll(() => {
  kernels = mirroredKernels();
});
afterAll(() => kernels?.dispose());

it('gives the results of the plain kernels in every operation, and the same tokens', () => {
  expect(() => kernelsAgree(kernels, createReferenceKernels(), 2e-5)).not.toThrow();
});

it('gives the same bits every time', { tags: ['long'] }, () => {
  expect(() => kernelsEqual(kernels, kernels)).not.toThrow();
});

memoryContract(() => kernels);
