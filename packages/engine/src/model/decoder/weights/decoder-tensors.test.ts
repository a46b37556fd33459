import { describe, expect, it } from 'vitest';
import { ArgumentError } from '../../../base/core/errors.js';
import { mean } from '../../../base/core/statistics.js';
import type { DecoderConfig } from '../../../contract/architecture.js';
import { checkConfig, decoderTensors, initialise, parameterCount } from './decoder-tensors.js';

const config: DecoderConfig = {
  vocabSize: 200,
  width: 16,
  layers: 2,
  heads: 2,
  kvHeads: 2,
  headDim: 8,
  feedForward: 24,
  context: 32,
  ropeBase: 10_000,
  normEpsilon: 1e-6,
};

function weights(changes: Partial<DecoderConfig> = {}, ...deviation: number[]) {
  const changed = { ...config, ...changes };
  const tensors = decoderTensors(changed, new Float32Array(parameterCount(changed)));
  initialise(changed, tensors, 7, ...deviation);
  return tensors;
}

const deviationOf = (tensor: Float32Array) => Math.sqrt(mean(tensor.map((x) => x * x)));

describe('first weights', () => {
  it('have an embedding of the deviation that was asked for, and logits of variance 1 all the same', () => {
    for (const deviation of [0.25, 0.5, 2]) {
      const { embedding, finalNorm } = weights({}, deviation);
      expect(deviationOf(embedding) / deviation).toBeCloseTo(1, 1);
      for (const gain of finalNorm) expect(gain * deviation * Math.sqrt(config.width)).toBeCloseTo(1, 6);
      expect([...weights({ untiedOutput: true }, deviation).finalNorm]).toEqual(Array(config.width).fill(1));
    }
    expect(deviationOf(weights().embedding)).toBeCloseTo(config.width ** -0.5, 1);
    expect([...weights().finalNorm]).toEqual(Array(config.width).fill(1));
  });

  it('are otherwise the same, whatever the embedding', () => {
    const [usual, other] = [weights(), weights({}, 0.5)];
    expect(other.layers).toEqual(usual.layers);
    expect(weights({}, 0.5)).toEqual(other);
  });
});

describe('the sizes and features of a decoder', () => {
  const gemma = {
    queryKeyNorm: true,
    gate: 'gelu',
    offsetNorms: true,
    resultNorms: true,
    scaledEmbedding: true,
  } as const;
  const slidingWindow = { positions: 4, layers: [0], ropeBase: 100 };
  const ofMistral = {
    positions: 4,
    layers: Array.from({ length: config.layers }, (_, i) => i),
    ropeBase: config.ropeBase,
  };

  const lfm2 = {
    queryKeyNorm: true,
    width: 2 * config.heads,
    headDim: 2,
    convolution: { taps: 3, layers: [0] },
  } as const;

  it.each<Partial<DecoderConfig>>([
    gemma,
    { ...gemma, slidingWindow, scoreDivisor: 5, attentionBias: 'qkvo' },
    { slidingWindow: ofMistral },
    lfm2,
    { ...lfm2, untiedOutput: true },
  ])('may be %j', (changes) => {
    expect(() => checkConfig({ ...config, ...changes })).not.toThrow();
  });

  it.each<Partial<DecoderConfig>>([
    { gate: 'gelu' },
    { slidingWindow },
    { slidingWindow: { ...ofMistral, ropeBase: 100 } },
    { slidingWindow: ofMistral, attentionBias: 'qkv' },
    { slidingWindow: ofMistral, ropeScaling: { type: 'linear', factor: 2 } },
    { ...lfm2, slidingWindow: ofMistral },
    { scoreDivisor: 5 },
    { ...gemma, resultNorms: undefined },
    { ...gemma, queryKeyNorm: undefined },
    { ...gemma, unrotatedLayers: [0] },
    { ...gemma, attentionBias: 'qkv' },
    { scoreDivisor: -1 },
    { ...lfm2, queryKeyNorm: undefined },
    { ...lfm2, attentionBias: 'qkvo' },
    { ...lfm2, headDim: 4 },
    { ...lfm2, ...gemma },
  ] as Partial<DecoderConfig>[])('are refused where no family has them: %j', (changes) => {
    expect(() => checkConfig({ ...config, ...changes })).toThrow(ArgumentError);
  });
});
