import { describe, expect, it } from 'vitest';
import { goldenPath } from '../../../../../../test/goldens.js';
import { CheckpointError, TokenizerError } from '../../../base/core/errors.js';
import { nodeFiles } from '../../../base/platform/node-files.js';
import type { DecoderConfig } from '../../../contract/architecture.js';
import { createTokenizer } from '../../tokenizers/create-tokenizer.js';
import { openModelDirectory } from '../hugging-face-directory.js';
import type { StoredTensor } from '../safetensors.js';
import { decoderTensors } from './gguf-decoder.js';
import { ggufHeader, ggufOf } from './gguf-model.js';

const config: DecoderConfig = {
  vocabSize: 9,
  width: 8,
  layers: 1,
  heads: 2,
  kvHeads: 1,
  headDim: 4,
  feedForward: 12,
  context: 16,
  ropeBase: 10_000,
  normEpsilon: 1e-6,
};
const symbols = ['<end>', '<ask>', '0', '\n', 'é'];
const spec = { type: 'symbols', symbols, stop: '<end>', endOfUser: '<ask>', endOfAssistant: '<end>' };
const headerOf = (description: unknown, changes: Partial<DecoderConfig> = {}) => {
  const header = ggufHeader({
    config: { ...config, ...changes },
    tokenizer: createTokenizer(description),
    name: 'solver',
  });
  return Object.fromEntries(Object.entries(header).map(([key, { value }]) => [key, value]));
};

describe('the header of a GGUF file', () => {
  it('has symbols of one byte as that byte, longer ones as tokens that are cut out first, and spare rows', () => {
    expect(headerOf(spec)).toMatchObject({
      'general.architecture': 'llama',
      'llama.rope.dimension_count': 4,
      'tokenizer.ggml.model': 'gpt2',
      'tokenizer.ggml.tokens': ['<end>', '<ask>', '0', 'Ċ', 'é', '[PAD5]', '[PAD6]', '[PAD7]', '[PAD8]'],
      'tokenizer.ggml.token_type': [3, 4, 1, 1, 4, 5, 5, 5, 5],
      'tokenizer.ggml.eos_token_id': 0,
      'tokenizer.ggml.add_bos_token': false,
      'tokenizer.chat_template': expect.stringContaining('<ask>'),
    });
  });

  it('has the 256 bytes and the markers', () => {
    const header = headerOf({ type: 'bytes' }, { vocabSize: 261 });
    expect(header['tokenizer.ggml.tokens']).toHaveLength(261);
    expect(header).toMatchObject({ 'tokenizer.ggml.eos_token_id': 257, 'tokenizer.ggml.padding_token_id': 256 });
  });

  it.each([
    ['llama-mini', 'llama', 'llama-bpe'],
    ['qwen2-mini', 'qwen2', 'qwen2'],
    ['qwen3-mini-bf16', 'qwen3', 'qwen2'],
  ])('knows the family and the pattern of %s', async (name, family, split) => {
    const { model, tokenizer } = await openModelDirectory(nodeFiles, goldenPath(`models/${name}`));
    expect(ggufHeader({ config: model.config, tokenizer, name })).toMatchObject({
      'general.architecture': { value: family },
      'tokenizer.ggml.pre': { value: split },
      'tokenizer.ggml.eos_token_id': { value: tokenizer.stopTokens[0] },
    });
  });

  const bpe = (changes: object) => ({
    type: 'huggingface',
    config: {},
    stopTokens: [0],
    tokenizer: {
      added_tokens: [],
      normalizer: null,
      decoder: null,
      post_processor: null,
      pre_tokenizer: { type: 'ByteLevel', add_prefix_space: false, trim_offsets: false, use_regex: true },
      model: { type: 'BPE', vocab: { a: 0, b: 1 }, merges: [] },
      ...changes,
    },
  });
  const byteFallback = { type: 'BPE', vocab: { a: 0 }, merges: [], byte_fallback: true };
  it.each<[string, unknown, Partial<DecoderConfig>, typeof TokenizerError, string]>([
    ['that overlap', { ...spec, symbols: [...symbols, 'ab', 'bc'] }, {}, TokenizerError, '"ab" ends as "bc" begins'],
    ['that look alike', { ...spec, symbols: ['<end>', '<ask>', 'Ċ', '\n'] }, {}, TokenizerError, 'tell two tokens'],
    ['of SentencePiece', bpe({ model: byteFallback }), {}, TokenizerError, 'its model is BPE, expected byte-level BPE'],
    ['that change case', bpe({ normalizer: { type: 'Lowercase' } }), {}, TokenizerError, 'by Lowercase'],
    ['split otherwise', bpe({ pre_tokenizer: { type: 'Whitespace' } }), {}, TokenizerError, 'the pattern by which'],
    ['with biases of Qwen3', spec, { queryKeyNorm: true, attentionBias: 'qkvo' }, CheckpointError, 'qwen3'],
    ['with biases of SmolLM3', spec, { unrotatedLayers: [3], attentionBias: 'qkvo' }, CheckpointError, 'smollm3'],
    ['of Gemma 3', spec, { offsetNorms: true }, CheckpointError, 'export a Hugging Face directory'],
    ['of LFM2', spec, { convolution: { taps: 3, layers: [0] } }, CheckpointError, 'export a Hugging Face directory'],
    [
      ...(['of Mistral with a window', spec] as const),
      { slidingWindow: { positions: 4, layers: [0], ropeBase: 10_000 } },
      ...([CheckpointError, 'no place for the sliding window'] as const),
    ],
    ['with other layers that do not rotate', spec, { unrotatedLayers: [0] }, CheckpointError, 'from 0: 0'],
    [
      ...(['stretched as Llama 3', spec] as const),
      {
        attentionBias: 'qkv',
        ropeScaling: {
          type: 'llama3',
          factor: 2,
          lowFrequencyFactor: 1,
          highFrequencyFactor: 4,
          originalContext: 8,
        },
      },
      ...([CheckpointError, 'not qwen2'] as const),
    ],
  ])('refuses what llama.cpp has no place for: %s', (_, description, changes, type, message) => {
    expect(() => headerOf(description, changes)).toThrow(type);
    expect(() => headerOf(description, changes)).toThrow(message);
  });

  it('takes the byte-level vocabulary of GPT-2', () => {
    expect(headerOf(bpe({}), { vocabSize: 2 })).toMatchObject({ 'tokenizer.ggml.pre': 'gpt-2' });
  });
});

describe('the tensors of a GGUF file', () => {
  it('have the elements of a head that turn together side by side in Llama, and stay as they are in others', async () => {
    const data = Uint8Array.from(new Uint8Array(Float32Array.from({ length: 8 }, (_, i) => i).buffer));
    const name = 'model.layers.0.self_attn.k_proj.weight';
    const stored: StoredTensor = {
      ...({ name, dtype: 'F32', shape: [4, 2] } as const),
      async *pieces() {
        yield { name, dtype: 'F32', first: 0, bytes: data };
      },
    };
    const readOf = async (changes: Partial<DecoderConfig>) =>
      Array.from((await decoderTensors({ ...config, ...changes }, [stored])[0]?.read()) ?? []);
    expect(await readOf({})).toEqual([0, 1, 4, 5, 2, 3, 6, 7]);
    expect(await readOf({ attentionBias: 'qkv' })).toEqual([0, 1, 2, 3, 4, 5, 6, 7]);
  });

  it('have factors for the frequencies that Llama 3 stretches', () => {
    const scaling = { type: 'llama3', factor: 8, lowFrequencyFactor: 1, highFrequencyFactor: 4 } as const;
    const [factors] = decoderTensors({ ...config, ropeScaling: { ...scaling, originalContext: 64 } }, []);
    expect(factors).toMatchObject({ name: 'rope_freqs.weight', shape: [2] });
    return expect(factors?.read()).resolves.toEqual(Float32Array.of(1, 8));
  });

  it('refuses before the first part', () => {
    const tokenizer = createTokenizer({ ...spec, symbols: [...symbols, 'ab', 'bc'] });
    expect(() => ggufOf({ config, tokenizer, name: 'x' }, [])).toThrow(TokenizerError);
  });
});
