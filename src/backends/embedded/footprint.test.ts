import { describe, expect, it } from 'vitest';
import { plainAdamW } from '../../../test/support/adamw.js';
import { type AdapterSettings, type DecoderConfig, PROJECTIONS } from '../../contract/architecture.js';
import type { TrainingSample } from '../../core/sample.js';
import type { MatrixKind } from '../../model/decoder/weights/packed-decoder.js';
import type { Kernels } from '../../tensor/kernels.js';
import { createReferenceKernels } from '../../tensor/reference/reference.js';
import { baseFootprint, cacheFootprint, policyFootprint } from './footprint.js';
import { Engine } from './thread/engine.js';
import { packSamples } from './thread/sample-batch.js';

const config: DecoderConfig = {
  vocabSize: 64,
  width: 16,
  layers: 2,
  heads: 2,
  kvHeads: 1,
  headDim: 8,
  feedForward: 32,
  context: 1100,
  ropeBase: 10_000,
  normEpsilon: 1e-6,
};
const adapter: AdapterSettings = { rank: 4, alpha: 4, targets: PROJECTIONS };
const optimizer = plainAdamW(1e-3);
const length = 1030; // a batch has at least 1024 rows

/** Kernels that know how many bytes they were asked for. */
function counting(): { kernels: Kernels; bytes(): number } {
  const kernels = createReferenceKernels();
  const sizes: number[] = [];
  const allocate = (floats: number) => {
    sizes.push(4 * floats);
    return kernels.allocate(floats);
  };
  const allocateBfloat16 = (length: number) => {
    sizes.push(2 * length);
    return kernels.allocateBfloat16(length);
  };
  return { kernels: { ...kernels, allocate, allocateBfloat16 }, bytes: () => sizes.reduce((a, b) => a + b, 0) };
}

const sample = (agent: string): TrainingSample => ({
  tokens: new Int32Array(length).fill(7),
  mask: new Uint8Array(length).fill(1, length - 2),
  behaviourLogprobs: new Float32Array(length),
  advantages: new Float32Array(length).fill(1),
  temperature: 1,
  policyVersion: 0,
  agent,
});

/** Trains and plays one step; what the engine asked its kernels for. */
function takes(shape: 'whole' | 'adapter', kind: MatrixKind = 'float32'): number {
  const { kernels, bytes } = counting();
  const engine = new Engine(kernels);
  const [base, policy] = [0, 1];
  if (shape === 'adapter') engine.createBase(base, config, kind);
  engine.createPolicy(policy, 'policy', shape === 'adapter' ? { base, adapter } : config, { seed: 1 });
  engine.publish(policy);
  const key = [1, 2] as const;
  engine.submit(1, policy, {
    prompt: new Array(length - 1).fill(1),
    stopTokens: [],
    maxTokens: 1,
    temperature: 0,
    topP: 1,
    topK: 0,
    key,
  });
  engine.tick();
  const options = { loss: { type: 'demonstrations' }, normalizer: 1 } as const;
  engine.forwardBackward(policy, packSamples([sample('a')]), options);
  engine.forwardBackward(policy, packSamples([sample('b')]), options);
  engine.optimStep(policy, { optimizer, clipNorm: 1 });
  return bytes();
}

const sum = (parts: object) => Object.values(parts).reduce((a: number, b: number) => a + b, 0);

describe('the footprint', () => {
  const request = { config, optimizer, agents: 2, longest: length, recompute: false };

  it('of a whole model is about what the engine asks its kernels for', () => {
    const expected = sum(policyFootprint(request)) + cacheFootprint(config, length);
    const ratio = takes('whole') / expected;
    expect(ratio).toBeGreaterThan(0.6);
    expect(ratio).toBeLessThan(1.3);
  });

  it.each(['float32', 'bfloat16'] as const)('of an adapter and its base in %s too', (kind) => {
    const base = baseFootprint(config, kind);
    const expected = sum(policyFootprint({ ...request, adapter })) + base + cacheFootprint(config, length);
    const ratio = takes('adapter', kind) / expected;
    expect(ratio).toBeGreaterThan(0.6);
    expect(ratio).toBeLessThan(1.3);
  });

  it('of a base in bfloat16 is about half, by what the engine asks for too', () => {
    for (const sizes of [config, { ...config, untiedOutput: true, attentionBias: 'qkvo' } as const]) {
      const [fine, coarse] = [baseFootprint(sizes, 'float32'), baseFootprint(sizes, 'bfloat16')];
      expect(coarse / fine).toBeGreaterThan(0.5);
      expect(coarse / fine).toBeLessThan(0.52);
    }
    const saved = takes('adapter', 'float32') - takes('adapter', 'bfloat16');
    const expected = baseFootprint(config, 'float32') - baseFootprint(config, 'bfloat16');
    expect(saved / expected).toBeGreaterThan(0.95);
    expect(saved / expected).toBeLessThan(1.1);
  });

  it('has moments only where the optimiser has, and one gradient for one agent', () => {
    const sgd = { type: 'sgd', learningRate: 0.1, momentum: 0, nesterov: false, weightDecay: 0 } as const;
    const lean = policyFootprint({ ...request, optimizer: sgd, agents: 1 });
    const full = policyFootprint(request);
    expect(lean.optimizer).toBe(0);
    expect(2 * lean.gradients).toBe(full.gradients);
  });
});
