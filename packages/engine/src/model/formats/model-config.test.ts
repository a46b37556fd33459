import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { CheckpointError } from '../../base/core/errors.js';
import type { DecoderConfig } from '../../contract/architecture.js';
import { readConfig, readStopTokens, writeConfig } from './model-config.js';

const llama = {
  architectures: ['LlamaForCausalLM'],
  model_type: 'llama',
  vocab_size: 395,
  hidden_size: 32,
  num_hidden_layers: 2,
  num_attention_heads: 4,
  num_key_value_heads: 4,
  intermediate_size: 64,
  max_position_embeddings: 512,
  rms_norm_eps: 1e-5,
};
const llama3 = {
  rope_type: 'llama3',
  factor: 4,
  low_freq_factor: 1,
  high_freq_factor: 3,
  original_max_position_embeddings: 64,
};
const gemma3 = { architectures: ['Gemma3ForCausalLM'], model_type: 'gemma3_text' };
/** LFM2-350M's config.json, for a smaller vocabulary and context. */
const lfm2 = {
  architectures: ['Lfm2ForCausalLM'],
  model_type: 'lfm2',
  rms_norm_eps: undefined,
  intermediate_size: undefined,
  block_auto_adjust_ff_dim: true,
  block_ff_dim: 6656,
  block_ffn_dim_multiplier: 1,
  block_multiple_of: 256,
  conv_L_cache: 3,
  conv_bias: false,
  full_attn_idxs: [2, 5, 8, 10, 12, 14],
  norm_eps: 1e-5,
  rope_theta: 1e6,
  hidden_size: 1024,
  num_attention_heads: 16,
  num_hidden_layers: 16,
  num_key_value_heads: 8,
};
const llama3Scaling = {
  type: 'llama3',
  factor: 4,
  lowFrequencyFactor: 1,
  highFrequencyFactor: 3,
  originalContext: 64,
};

const gemma = {
  queryKeyNorm: true,
  gate: 'gelu',
  offsetNorms: true,
  resultNorms: true,
  scaledEmbedding: true,
} as const satisfies Partial<DecoderConfig>;
const count = fc.integer({ min: 1, max: 40 });
const decoderConfig: fc.Arbitrary<DecoderConfig> = fc
  .record({
    vocabSize: count,
    width: count,
    layers: count,
    kvHeads: count,
    group: count,
    half: count,
    feedForward: count,
  })
  .chain(({ group, half, ...sizes }) =>
    fc
      .record({
        context: count,
        ropeBase: fc.double({ min: 1, max: 1e7, noNaN: true }),
        normEpsilon: fc.double({ min: 1e-9, max: 0.1, noNaN: true }),
      })
      .map((rest) => ({ ...sizes, ...rest, heads: sizes.kvHeads * group, headDim: 2 * half })),
  );

const positive = fc.double({ min: 0.1, max: 100, noNaN: true });
const features: fc.Arbitrary<Partial<DecoderConfig>> = fc
  .tuple(
    fc.constantFrom<Partial<DecoderConfig>>(
      {},
      { attentionBias: 'qkv' },
      { attentionBias: 'qkvo' },
      { queryKeyNorm: true },
      { queryKeyNorm: true, attentionBias: 'qkvo' },
      { unrotatedLayers: [0] },
      { unrotatedLayers: [0], attentionBias: 'qkvo' },
      gemma,
      { ...gemma, attentionBias: 'qkvo', scoreDivisor: 5, slidingWindow: { positions: 7, layers: [0], ropeBase: 9 } },
      { queryKeyNorm: true, convolution: { taps: 4, layers: [0] } },
    ),
    fc.constantFrom<Partial<DecoderConfig>>({}, { untiedOutput: true }),
    fc.oneof(
      fc.constant(undefined),
      fc.record({ type: fc.constant('linear' as const), factor: positive }),
      fc.record({
        type: fc.constant('llama3' as const),
        factor: positive,
        lowFrequencyFactor: positive,
        highFrequencyFactor: positive,
        originalContext: count,
      }),
    ),
  )
  .map(([attention, output, ropeScaling]) => ({ ...attention, ...output, ...(ropeScaling && { ropeScaling }) }));

describe('readConfig', () => {
  it('reads back what writeConfig writes', () => {
    const stop = fc.array(fc.nat(39), { maxLength: 3 });
    fc.assert(
      fc.property(decoderConfig, features, stop, (sizes, more, stopTokens) => {
        const width = more.convolution ? sizes.heads * sizes.headDim : sizes.width;
        const config = { ...sizes, ...more, width };
        const { architecture, dtype, ...read } = readConfig(
          JSON.parse(JSON.stringify(writeConfig(config, stopTokens))),
        );
        expect(read).toEqual({ config, stopTokens });
        expect(dtype).toBe('float32');
        const family = config.attentionBias === 'qkv' ? 'qwen2' : 'llama';
        const smollm3 = config.unrotatedLayers && 'smollm3';
        const gemma3 = config.offsetNorms && 'gemma3';
        const lfm2 = config.convolution && 'lfm2';
        expect(architecture).toBe(gemma3 ?? smollm3 ?? lfm2 ?? (config.queryKeyNorm ? 'qwen3' : family));
      }),
    );
  });

  it('writes no end if there is none', () => {
    expect(writeConfig(readConfig(llama).config, []).eos_token_id).toBe(null);
  });

  it('fills in what older files leave out, as their family does', () => {
    const { config, stopTokens } = readConfig({ ...llama, num_key_value_heads: undefined });
    expect(config).toMatchObject({ heads: 4, kvHeads: 4, headDim: 8, ropeBase: 10_000, untiedOutput: true });
    expect(stopTokens).toEqual([]);
    expect(readConfig({ ...llama, architectures: ['Qwen3ForCausalLM'] }).config.headDim).toBe(128);
    expect(readConfig({ ...llama, architectures: undefined, model_type: 'qwen2' }).architecture).toBe('qwen2');
  });

  // As transformers 5.24 describes models of empty files.
  it.each([
    ['llama', { vocabSize: 32_000, width: 4096, layers: 32, kvHeads: 32, headDim: 128, context: 2048 }],
    ['mistral', { vocabSize: 32_000, feedForward: 14_336, kvHeads: 8, context: 131_072, ropeBase: 10_000 }],
    ['qwen2', { vocabSize: 151_936, feedForward: 22_016, kvHeads: 32, headDim: 128, untiedOutput: true }],
    ['qwen3', { vocabSize: 151_936, width: 4096, headDim: 128, context: 32_768, normEpsilon: 1e-6 }],
    ['smollm3', { vocabSize: 128_256, width: 2048, layers: 36, heads: 16, kvHeads: 4, ropeBase: 2_000_000 }],
    ['gemma3_text', { vocabSize: 262_208, width: 2304, layers: 26, heads: 8, kvHeads: 4, headDim: 256 }],
    ['lfm2', { vocabSize: 65_536, width: 2560, feedForward: 8192, kvHeads: 8, normEpsilon: 1e-5, context: 128_000 }],
  ])('fills in what a file of %s may leave out', (model_type, expected) => {
    const layers = model_type === 'lfm2' ? { full_attn_idxs: [2] } : {};
    expect(readConfig({ model_type, ...layers }).config).toMatchObject(expected);
  });

  it('reads swish as the other name of silu', () => {
    expect(readConfig({ ...llama, hidden_act: 'swish' })).toEqual(readConfig({ ...llama, hidden_act: 'silu' }));
  });

  const mistral = { ...llama, architectures: ['MistralForCausalLM'], model_type: 'mistral' };

  it('reads a Mistral model whose window holds the whole context as a Llama model', () => {
    for (const window of [{ sliding_window: null }, { sliding_window: 512 }, {}])
      expect(readConfig({ ...mistral, ...window })).toEqual(readConfig(llama));
  });

  it('writes a Llama model whose heads do not divide its width as one of Mistral, which transformers reads', () => {
    const { config } = readConfig({ ...mistral, hidden_size: 34, head_dim: 8, sliding_window: null });
    for (const bias of [undefined, 'qkvo'] as const) {
      const biased = { ...config, ...(bias && { attentionBias: bias }) };
      const written = writeConfig(biased, []);
      expect(written.model_type).toBe(bias === undefined ? 'mistral' : 'llama');
      expect(readConfig(JSON.parse(JSON.stringify(written))).config).toEqual(biased);
    }
  });

  it('reads and writes the window of Mistral in all layers', () => {
    const { config } = readConfig({ ...mistral, sliding_window: 64, rope_theta: 500 });
    expect(config.slidingWindow).toEqual({ positions: 64, layers: [0, 1], ropeBase: 500 });
    const long = readConfig({ ...mistral, max_position_embeddings: 4097 }).config;
    expect(long.slidingWindow?.positions).toBe(4096);
    const written = writeConfig(config, []);
    expect(written).toMatchObject({ architectures: ['MistralForCausalLM'], sliding_window: 64 });
    expect(readConfig(written).config).toEqual(config);
  });

  it("reads SmolLM3's layers without rotation, its base and its tied output", () => {
    const smollm3 = { ...llama, architectures: ['SmolLM3ForCausalLM'], model_type: 'smollm3', num_hidden_layers: 9 };
    const of = (changes: object) => readConfig({ ...smollm3, ...changes }).config;
    expect(of({})).toMatchObject({ unrotatedLayers: [3, 7], ropeBase: 2_000_000 });
    expect(of({})).not.toHaveProperty('untiedOutput');
    expect(of({ tie_word_embeddings: false })).toHaveProperty('untiedOutput', true);
    expect(of({ no_rope_layer_interval: 3 })).toHaveProperty('unrotatedLayers', [2, 5, 8]);
    expect(of({ no_rope_layers: [0, 1, 1, 1, 1, 0, 1, 1, 1] })).toHaveProperty('unrotatedLayers', [0, 5]);
    expect(of({ no_rope_layers: Array(9).fill(1) })).not.toHaveProperty('unrotatedLayers');
  });

  it('reads the windows, rotations and scale of Gemma 3 from both generations of files', () => {
    const of = (changes: object) => readConfig({ ...llama, ...gemma3, num_hidden_layers: 7, ...changes }).config;
    const features = { gate: 'gelu', offsetNorms: true, resultNorms: true, scaledEmbedding: true, queryKeyNorm: true };
    expect(of({})).toMatchObject({ ...features, headDim: 256, ropeBase: 1e6 });
    for (const absent of ['untiedOutput', 'scoreDivisor', 'ropeScaling']) expect(of({})).not.toHaveProperty(absent);
    expect(of({}).slidingWindow).toEqual({ positions: 4096, layers: [0, 1, 2, 3, 4, 6], ropeBase: 10_000 });
    expect(of({ head_dim: 8 }).scoreDivisor).toBe(256);
    expect(of({ head_dim: 8, query_pre_attn_scalar: 8 })).not.toHaveProperty('scoreDivisor');
    const window = { positions: 512, layers: [0, 2, 4, 6], ropeBase: 5000 };
    const older = { rope_theta: 2e6, rope_scaling: { rope_type: 'linear', factor: 8 }, rope_local_base_freq: 5000 };
    const ropes = {
      full_attention: { rope_type: 'linear', factor: 8, rope_theta: 2e6 },
      sliding_attention: { rope_type: 'default', rope_theta: 5000 },
    };
    const expected = { ropeBase: 2e6, ropeScaling: { type: 'linear', factor: 8 }, slidingWindow: window };
    const pattern = { sliding_window: 512, sliding_window_pattern: 2 };
    expect(of({ ...older, ...pattern })).toMatchObject(expected);
    expect(of({ rope_parameters: ropes, ...pattern })).toMatchObject(expected);
    expect(of({ layer_types: Array(7).fill('full_attention') })).not.toHaveProperty('slidingWindow');
  });

  it('reads the convolutions of LFM2, and the width of its feed-forward layers, from both generations of files', () => {
    const of = (changes: object) => readConfig({ ...llama, ...lfm2, ...changes }).config;
    const convolution = { taps: 3, layers: [0, 1, 3, 4, 6, 7, 9, 11, 13, 15] };
    const sizes = { headDim: 64, kvHeads: 8, feedForward: 4608, normEpsilon: 1e-5, ropeBase: 1e6 };
    expect(of({})).toMatchObject({ ...sizes, queryKeyNorm: true, convolution });
    expect(of({})).not.toHaveProperty('untiedOutput');
    expect(of({ tie_embedding: false })).toHaveProperty('untiedOutput', true);
    const types = Array.from({ length: 16 }, (_, layer) => (layer < 15 ? 'full_attention' : 'conv'));
    const rope_parameters = { rope_theta: 5e6, rope_type: 'default' };
    const newer = { block_ff_dim: undefined, intermediate_size: 9728, layer_types: types, rope_parameters };
    expect(of(newer)).toMatchObject({ feedForward: 6656, ropeBase: 5e6, convolution: { taps: 3, layers: [15] } });
    expect(of({ ...newer, block_auto_adjust_ff_dim: false }).feedForward).toBe(9728);
    expect(of({ block_ffn_dim_multiplier: 1.5, block_multiple_of: 100 }).feedForward).toBe(6700);
    expect(of({ block_ffn_dim_multiplier: null }).feedForward).toBe(4437);
    expect(of({ norm_eps: undefined, conv_L_cache: 4 })).toMatchObject({ normEpsilon: 1e-5, convolution: { taps: 4 } });
  });

  const linear = { type: 'linear', factor: 2 };

  it.each([
    [{ rope_theta: 5e5, rope_scaling: null }, 5e5, undefined],
    [{ rope_theta: 5e5, rope_scaling: llama3 }, 5e5, llama3Scaling],
    [{ rope_theta: 5e5, rope_scaling: { type: 'linear', factor: 2 } }, 5e5, { type: 'linear', factor: 2 }],
    [{ rope_parameters: { rope_theta: 1e6, rope_type: 'default' } }, 1e6, undefined],
    [{ rope_parameters: { ...llama3, rope_theta: 1e6 } }, 1e6, llama3Scaling],
    [{ rope_parameters: { rope_type: 'default' }, rope_theta: 7e5 }, 7e5, undefined],
    [{ rope_parameters: {}, rope_scaling: { type: 'linear', factor: 2 }, rope_theta: 7e5 }, 7e5, linear],
    [{ rope_parameters: { ...linear, rope_theta: 7e5 }, rope_scaling: linear, rope_theta: 7e5 }, 7e5, linear],
  ])('reads the rotary embedding of either generation: %j', (rope, base, scaling) => {
    const model = readConfig({ ...llama, ...rope });
    expect(model.config.ropeBase).toBe(base);
    expect(model.config.ropeScaling).toEqual(scaling);
  });

  it('knows what sets the families apart', () => {
    const of = (name: string, more: object = {}) => {
      const { attentionBias, queryKeyNorm } = readConfig({ ...llama, architectures: [name], ...more }).config;
      return { attentionBias, queryKeyNorm };
    };
    const biased = { attention_bias: true };
    expect(of('LlamaForCausalLM')).toEqual({});
    expect(of('LlamaForCausalLM', biased)).toEqual({ attentionBias: 'qkvo' });
    expect(of('Qwen2ForCausalLM')).toEqual({ attentionBias: 'qkv' });
    expect(of('Qwen3ForCausalLM')).toEqual({ queryKeyNorm: true });
    expect(of('Qwen3ForCausalLM', biased)).toEqual({ queryKeyNorm: true, attentionBias: 'qkvo' });
  });

  it.each<[object, string]>([
    [
      { architectures: ['OlmoForCausalLM'] },
      '"OlmoForCausalLM" is not supported, expected one of LlamaForCausalLM, Mis',
    ],
    [
      { architectures: ['Gemma3ForConditionalGeneration'] },
      '"Gemma3ForConditionalGeneration" is not supported: of the Gemma models only the text models of Gemma 3 are',
    ],
    [{ architectures: ['Gemma2ForCausalLM'] }, 'of the Gemma models only the text models of Gemma 3 are read'],
    [{ ...gemma3, hidden_activation: 'gelu' }, 'hidden_activation = "gelu" is not supported'],
    [{ ...gemma3, use_bidirectional_attention: true }, 'use_bidirectional_attention = true is not supported'],
    [{ ...gemma3, final_logit_softcapping: 30 }, 'final_logit_softcapping = 30 is not supported'],
    [{ ...gemma3, attn_logit_softcapping: 50 }, 'attn_logit_softcapping = 50 is not supported'],
    [{ ...gemma3, sliding_window: 0 }, 'sliding_window: '],
    [{ ...gemma3, sliding_window: null }, 'sliding_window: '],
    [{ ...gemma3, layer_types: ['full_attention'] }, 'layer_types: expected 2 names, found 1'],
    [{ ...gemma3, layer_types: ['full_attention', 'linear_attention'] }, 'layer_types.1: '],
    [
      { ...gemma3, rope_parameters: { sliding_attention: { rope_type: 'linear', factor: 2 } } },
      'sliding_attention must be of the default kind',
    ],
    [{ architectures: ['Lfm2MoeForCausalLM'] }, 'of the LFM2 models only the dense text models are read'],
    [{ ...lfm2, conv_bias: true }, 'conv_bias = true is not supported'],
    [{ ...lfm2, full_attn_idxs: undefined }, 'expected a layer that convolves'],
    [{ ...lfm2, layer_types: ['conv'] }, 'layer_types: expected 16 names, found 1'],
    [{ ...lfm2, layer_types: Array(16).fill('mamba') }, 'layer_types.0: '],
    [{ ...lfm2, block_ff_dim: undefined }, 'intermediate_size: '],
    [{ ...lfm2, head_dim: 32 }, 'expected 1024 values in all heads, found 512'],
    [{ architectures: ['Qwen3MoeForCausalLM'] }, '"Qwen3MoeForCausalLM" is not supported: mixtures of experts'],
    [
      { architectures: ['MistralForCausalLM'], sliding_window: 64, rope_scaling: { type: 'linear', factor: 2 } },
      'sliding_window = 64 is not supported beside stretched positions',
    ],
    [{ architectures: ['SmolLM3ForCausalLM'], no_rope_layers: [1] }, 'no_rope_layers: expected 2 numbers, found 1'],
    [{ architectures: ['toString'] }, 'architecture "toString" is not supported'],
    [{ architectures: null, model_type: null }, 'architecture "none" is not supported'],
    [{ hidden_size: undefined }, 'hidden_size: '],
    [{ num_hidden_layers: 0 }, 'num_hidden_layers: '],
    [{ num_hidden_layers: 1e12 }, 'num_hidden_layers: '],
    [{ max_position_embeddings: 2 ** 24 }, 'max_position_embeddings: '],
    [{ vocab_size: '395' }, 'vocab_size: '],
    [{ rms_norm_eps: -1 }, 'rms_norm_eps: '],
    [{ eos_token_id: 'end' }, 'eos_token_id: '],
    [{ hidden_size: 30 }, 'expected an even number of values a head, found 7.5'],
    [{ head_dim: 7 }, 'expected an even number of values a head, found 7'],
    [{ num_key_value_heads: 3 }, '4 heads cannot share 3 key/value heads evenly'],
    [{ rope_scaling: { type: 'yarn', factor: 2 } }, 'rope_scaling of the kind "yarn" is not supported'],
    [{ rope_parameters: { ...llama3, high_freq_factor: 'x' } }, 'rope_parameters.high_freq_factor: '],
    [{ rope_parameters: 'default' }, 'rope_parameters: '],
    [{ rope_parameters: { rope_theta: 1e4 }, rope_scaling: llama3 }, 'rope_scaling says another than rope_parameters'],
    [{ rope_parameters: { partial_rotary_factor: 0.5 } }, 'rope_parameters.partial_rotary_factor: '],
    [{ rope_theta: 0 }, 'rope_theta: '],
    [{ hidden_act: 'gelu' }, 'hidden_act = "gelu" is not supported'],
    [{ mlp_bias: true }, 'mlp_bias = true is not supported'],
    [{ use_sliding_window: true }, 'use_sliding_window = true is not supported'],
    [{ layer_types: ['full_attention', 'sliding_attention'] }, 'layer_types = '],
    [{ partial_rotary_factor: 0.5 }, 'partial_rotary_factor = 0.5 is not supported'],
    [{ quantization_config: { bits: 4 } }, 'quantization_config = '],
    [{ quantization: { group_size: 64, bits: 4 } }, 'quantization = '],
  ])('refuses %j', (change, message) => {
    const read = () => readConfig({ ...llama, ...change }, 'dir/config.json');
    expect(read).toThrow(CheckpointError);
    expect(read).toThrow('dir/config.json: ');
    expect(read).toThrow(message);
  });

  it('refuses what is no object', () => {
    for (const json of [null, 3, 'config', []]) expect(() => readConfig(json)).toThrow(CheckpointError);
  });
});

describe('readStopTokens', () => {
  it('reads one id, several or none', () => {
    expect(readStopTokens({ eos_token_id: 5 }, 'f')).toEqual([5]);
    expect(readStopTokens({ eos_token_id: [5, 6] }, 'f')).toEqual([5, 6]);
    expect(readStopTokens({ eos_token_id: null }, 'f')).toEqual([]);
    expect(readStopTokens({}, 'f')).toEqual([]);
  });
});
