import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { memoryFiles, safetensorsBytes } from '../../../../../test/support/memory-files.js';
import { fromHuggingFace } from '../../../../../test/support/on-host.js';
import { ArgumentError, CheckpointError } from '../../base/core/errors.js';
import type { DecoderConfig } from '../../contract/architecture.js';
import { decoderTensors, type FlatTensors, parameterCount } from '../decoder/weights/decoder-tensors.js';
import { decoderPlaces } from './decoder-layout.js';
import { openSafetensors, type StoredTensor } from './safetensors.js';
import type { NamedTensor } from './tensor.js';
import { expectedTensors } from './tensor-names.js';
import { takeTensor } from './tensor-place.js';

/** A decoder whose every weight is another whole number. */
const numbered = (config: DecoderConfig) =>
  decoderTensors(
    config,
    Float32Array.from({ length: parameterCount(config) }, (_, i) => i + 1),
  );
const zero = (config: DecoderConfig) => decoderTensors(config, new Float32Array(parameterCount(config)));

const written = (tensors: FlatTensors<Float32Array>, config: DecoderConfig) =>
  decoderPlaces(tensors, config).map(takeTensor);
const stored = async (tensors: readonly NamedTensor[]): Promise<Map<string, StoredTensor>> => {
  const files = memoryFiles(new Map([['f', safetensorsBytes(tensors)]]));
  return new Map((await openSafetensors(files, 'f')).tensors);
};
const byName = (tensors: readonly NamedTensor[]) => new Map(tensors.map((tensor) => [tensor.name, tensor]));

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
  it('goes to Hugging Face and back without a change', async () => {
    await fc.assert(
      fc.asyncProperty(config, async (sizes) => {
        const tensors = numbered(sizes);
        const target = zero(sizes);
        await fromHuggingFace(target, await stored(written(tensors, sizes)), sizes);
        expect(target).toEqual(tensors);
      }),
      { numRuns: 40 },
    );
  });

  it('writes every tensor that a checkpoint holds, and no other', () => {
    fc.assert(
      fc.property(config, (sizes) => {
        const byName = (a: { name: string }, b: { name: string }) => (a.name < b.name ? -1 : 1);
        const tensors = written(numbered(sizes), sizes).map(({ name, shape }) => ({ name, shape }));
        expect(tensors.sort(byName)).toEqual(expectedTensors(sizes).sort(byName));
      }),
      { numRuns: 40 },
    );
  });

  it('splits and transposes: y = x W in the engine is y = W x there', () => {
    const tensors = numbered(small);
    const theirs = byName(written(tensors, small));
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

  it('refuses tensors that are missing, of another shape, or a target of other sizes', async () => {
    const tensors = numbered(small);
    const theirs = written(tensors, small);
    const source = await stored(theirs);
    const name = 'model.layers.0.self_attn.k_proj.weight';
    const wrong = await stored(theirs.map((tensor) => (tensor.name === name ? { ...tensor, shape: [3, 2] } : tensor)));
    await expect(fromHuggingFace(tensors, wrong, small, 'f')).rejects.toThrow(CheckpointError);
    await expect(fromHuggingFace(tensors, wrong, small, 'f')).rejects.toThrow(
      `f: tensor "${name}" has shape [3, 2], expected [2, 3]`,
    );
    source.delete(name);
    await expect(fromHuggingFace(tensors, source, small, 'f')).rejects.toThrow(`f: tensor "${name}" [2, 3] is missing`);
    expect(() => written(tensors, { ...small, feedForward: 3 })).toThrow(ArgumentError);
    expect(() => decoderPlaces(tensors, { ...small, layers: 2 })).toThrow(ArgumentError);
  });
});

function layerOf(tensors: FlatTensors<Float32Array>) {
  const [layer] = tensors.layers;
  if (layer === undefined) throw new Error('no layer');
  return layer;
}
