import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import type { DecoderConfig } from '../../core/backend.js';
import { ArgumentError, CheckpointError } from '../../core/errors.js';
import { type DecoderTensors, decoderTensors, parameterCount } from '../decoder/parameters.js';
import { fromHuggingFace, toHuggingFace } from './layout.js';
import { expectedTensors } from './names.js';
import type { StoredTensor } from './safetensors.js';

/** A decoder whose every weight is another whole number. */
const numbered = (config: DecoderConfig) =>
  decoderTensors(
    config,
    Float32Array.from({ length: parameterCount(config) }, (_, i) => i + 1),
  );
const zero = (config: DecoderConfig) => decoderTensors(config, new Float32Array(parameterCount(config)));

const stored = (tensors: ReturnType<typeof toHuggingFace>): Map<string, StoredTensor> =>
  new Map(tensors.map(({ name, shape, data }) => [name, { dtype: 'F32', shape, data }]));

const size = fc.integer({ min: 1, max: 5 });
const sizes = { vocabSize: size, width: size, layers: size, kvHeads: size, group: size, half: size, feedForward: size };
const config: fc.Arbitrary<DecoderConfig> = fc
  .record({ ...sizes, bias: fc.constantFrom(undefined, 'qkv', 'qkvo'), norm: fc.boolean(), untied: fc.boolean() })
  .map(({ group, half, bias, norm, untied, ...sizes }) => ({
    ...sizes,
    ...(bias && { attentionBias: bias }),
    ...(norm && { queryKeyNorm: true }),
    ...(untied && { untiedOutput: true }),
    heads: sizes.kvHeads * group,
    headDim: 2 * half,
    context: 16,
    ropeBase: 10_000,
    normEpsilon: 1e-6,
  }));
const small: DecoderConfig = {
  vocabSize: 2,
  width: 3,
  layers: 1,
  heads: 2,
  kvHeads: 1,
  headDim: 2,
  feedForward: 2,
  context: 16,
  ropeBase: 10_000,
  normEpsilon: 1e-6,
};

describe('the layout', () => {
  it('goes to Hugging Face and back without a change', () => {
    fc.assert(
      fc.property(config, (sizes) => {
        const tensors = numbered(sizes);
        const target = zero(sizes);
        fromHuggingFace(target, stored(toHuggingFace(tensors, sizes)), sizes);
        expect(target).toEqual(tensors);
      }),
      { numRuns: 40 },
    );
  });

  it('writes every tensor that a checkpoint holds, and no other', () => {
    fc.assert(
      fc.property(config, (sizes) => {
        const byName = (a: { name: string }, b: { name: string }) => (a.name < b.name ? -1 : 1);
        const written = toHuggingFace(numbered(sizes), sizes).map(({ name, shape }) => ({ name, shape }));
        expect(written.sort(byName)).toEqual(expectedTensors(sizes).sort(byName));
      }),
      { numRuns: 40 },
    );
  });

  it('splits and transposes: y = x W in the engine is y = W x there', () => {
    const tensors = numbered(small);
    const theirs = stored(toHuggingFace(tensors, small));
    const x = [1, -2, 5];
    const ours = Array.from({ length: 8 }, (_, o) =>
      x.reduce((sum, xi, i) => sum + xi * (layerOf(tensors).qkv[i * 8 + o] ?? 0), 0),
    );
    const apply = (name: string) => {
      const { data, shape } = theirs.get(`model.layers.0.self_attn.${name}.weight`) ?? { data: [], shape: [] };
      return Array.from({ length: shape[0] ?? 0 }, (_, o) =>
        x.reduce((sum, xi, i) => sum + xi * (data[o * 3 + i] ?? 0), 0),
      );
    };
    expect([...apply('q_proj'), ...apply('k_proj'), ...apply('v_proj')]).toEqual(ours);
    expect(theirs.get('model.layers.0.mlp.up_proj.weight')?.data).toEqual(
      Float32Array.from([2, 3].flatMap((column) => [0, 1, 2].map((i) => layerOf(tensors).gateUp[i * 4 + column] ?? 0))),
    );
  });

  it('refuses tensors that are missing, of another shape, or a target of other sizes', () => {
    const tensors = numbered(small);
    const source = stored(toHuggingFace(tensors, small));
    const name = 'model.layers.0.self_attn.k_proj.weight';
    const wrong = new Map(source).set(name, { dtype: 'F32', shape: [3, 2], data: new Float32Array(6) });
    expect(() => fromHuggingFace(tensors, wrong, small, 'f')).toThrow(CheckpointError);
    expect(() => fromHuggingFace(tensors, wrong, small, 'f')).toThrow(
      `f: tensor "${name}" has shape [3, 2], expected [2, 3]`,
    );
    source.delete(name);
    expect(() => fromHuggingFace(tensors, source, small, 'f')).toThrow(`f: tensor "${name}" [2, 3] is missing`);
    expect(() => toHuggingFace(tensors, { ...small, feedForward: 3 })).toThrow(ArgumentError);
    expect(() => fromHuggingFace(tensors, source, { ...small, layers: 2 })).toThrow(ArgumentError);
  });
});

function layerOf(tensors: DecoderTensors) {
  const [layer] = tensors.layers;
  if (layer === undefined) throw new Error('no layer');
  return layer;
}
