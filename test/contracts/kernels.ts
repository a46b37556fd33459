/**
 * The contract of `HostKernels`, held against every implementation: each operation against a float64 formula written
 * here, and the promises of packages/engine/src/tensor/kernels.ts (row invariance, determinism, equal bits of cached
 * and plain attention, of sampled and trained log-probs) bit for bit.
 */

import type { HostKernels, Kernels } from '@drmas/engine/kernels';
import { afterAll, beforeAll, describe, it, type TestOptions } from 'vitest';
import { attentionContract, cacheContract } from './kernels/attention.js';
import { bfloat16Contract } from './kernels/bfloat16.js';
import { bfloat16ProductsContract } from './kernels/bfloat16-products.js';
import { PROCESSOR_RUNS, RUNS } from './kernels/every-kernel.js';
import { Examples, type KernelOutputs } from './kernels/examples.js';
import { logprobContract } from './kernels/head.js';
import { blocksContract, linearContract } from './kernels/linear.js';
import { memoryContract } from './kernels/memory.js';
import { optimiserContract } from './kernels/optimiser.js';
import {
  convolutionContract,
  embeddingContract,
  gateContract,
  headNormContract,
  normContract,
  ropeContract,
} from './kernels/rows.js';
import { samplingContract } from './kernels/sampling.js';
import { close, sameBits } from './kernels/support.js';

/**
 * Runs the whole contract on the kernels that `create` makes. `wgsl` leaves out the properties that WGSL does not
 * promise: subnormal numbers in products, and sums in double precision. `repeated` has the options of the test that
 * runs all kernels twice.
 */
export function kernelsContract(
  name: string,
  create: () => HostKernels,
  { wgsl = false, repeated = {} }: { readonly wgsl?: boolean; readonly repeated?: TestOptions } = {},
): void {
  describe(`kernels: ${name}`, () => {
    let kernels: HostKernels;
    beforeAll(() => {
      kernels = create();
    });
    afterAll(() => kernels?.dispose());
    const subject = () => kernels;

    linearContract(subject);
    if (!wgsl) blocksContract(subject);
    bfloat16Contract(subject, { subnormals: !wgsl });
    bfloat16ProductsContract(subject);
    normContract(subject);
    headNormContract(subject);
    ropeContract(subject);
    attentionContract(subject);
    cacheContract(subject);
    convolutionContract(subject);
    gateContract(subject);
    embeddingContract(subject);
    logprobContract(subject);
    samplingContract(subject);
    memoryContract(subject);
    optimiserContract(subject, { sums: wgsl ? 1e-6 : 1e-12 });

    it('gives the same bits every time', repeated, () => {
      kernelsEqual(kernels, kernels);
    });
  });
}

/** Runs every kernel on fixed examples of its arguments, and returns the outputs. */
function everyKernel(kernels: HostKernels): KernelOutputs {
  const outputs: KernelOutputs = { shared: new Map(), private: new Map() };
  const { blockLinear }: Kernels = kernels; // a device has none
  const runs = blockLinear === undefined ? RUNS : [...RUNS, ...PROCESSOR_RUNS];
  for (const [i, run] of runs.entries()) run(new Examples(kernels, `example ${i}`, outputs));
  return outputs;
}

/** @throws unless both kernels give the same bits in every operation (one implementation at several thread counts). */
export function kernelsEqual(a: HostKernels, b: HostKernels): void {
  const [actual, expected] = [everyKernel(a), everyKernel(b)];
  for (const [name, values] of actual.shared) sameBits(values, expected.shared.get(name) ?? new Float32Array(), name);
  for (const [name, values] of actual.private) sameBits(values, expected.private.get(name) ?? new Float32Array(), name);
}

/**
 * @throws unless |a − b| <= tolerance (1 + |b|) for every number that either writes, on inputs of about unit size,
 * and both sample the same tokens. Packed matrices and caches are private, so they show in the results of the kernels
 * that read them.
 */
export function kernelsAgree(a: HostKernels, b: HostKernels, tolerance: number): void {
  const expected = everyKernel(b).shared;
  for (const [name, values] of everyKernel(a).shared) {
    const others = expected.get(name) ?? new Float32Array();
    if (values instanceof Float32Array) close(values, others, tolerance, `${name} (${a.name} against ${b.name})`);
    else sameBits(values, others, name);
  }
}
