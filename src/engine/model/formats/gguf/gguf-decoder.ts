/** A decoder for llama.cpp: its sizes and its tensors under that program's names. */

import { CheckpointError } from '../../../../base/errors.js';
import type { DecoderConfig } from '../../../contract/architecture.js';
import { ropeFrequencies } from '../../decoder/weights/rotary-table.js';
import { familyOf } from '../model-config.js';
import { readTensor, type StoredTensor } from '../safetensors.js';
import { rowLength } from '../tensor.js';
import type { GgufMetadata, GgufTensor, GgufValue } from './gguf-file.js';

const count = (value: number): GgufValue => ({ type: 'uint32', value });
const real = (value: number): GgufValue => ({ type: 'float32', value });

/** The decoder's description. @throws CheckpointError naming what llama.cpp's model of this family lacks */
export function decoderMetadata(config: DecoderConfig): GgufMetadata {
  const family = familyOf(config);
  const { ropeScaling } = config;
  if (family === 'qwen3' && config.attentionBias !== undefined)
    throw new CheckpointError("a GGUF file has no place for the biases of a Qwen3 model's attention");
  if (family !== 'llama' && ropeScaling?.type === 'llama3')
    throw new CheckpointError(
      `a GGUF file stretches positions the way of Llama 3 in Llama models alone, not ${family}`,
    );
  return {
    'general.architecture': { type: 'string', value: family },
    [`${family}.block_count`]: count(config.layers),
    [`${family}.context_length`]: count(config.context),
    [`${family}.embedding_length`]: count(config.width),
    [`${family}.feed_forward_length`]: count(config.feedForward),
    [`${family}.attention.head_count`]: count(config.heads),
    [`${family}.attention.head_count_kv`]: count(config.kvHeads),
    [`${family}.attention.key_length`]: count(config.headDim),
    [`${family}.attention.value_length`]: count(config.headDim),
    [`${family}.attention.layer_norm_rms_epsilon`]: real(config.normEpsilon),
    [`${family}.rope.freq_base`]: real(config.ropeBase),
    [`${family}.rope.dimension_count`]: count(config.headDim),
    [`${family}.vocab_size`]: count(config.vocabSize),
    ...(ropeScaling?.type === 'linear' && {
      [`${family}.rope.scaling.type`]: { type: 'string', value: 'linear' },
      [`${family}.rope.scaling.factor`]: real(ropeScaling.factor),
    }),
  };
}

/** The tensors in the order of the directory, and the additional tensors that llama.cpp needs. */
export function decoderTensors(config: DecoderConfig, stored: Iterable<StoredTensor>): GgufTensor[] {
  const turns = familyOf(config) === 'llama'; // llama.cpp rotates neighbours in Llama, halves in the others
  const tensors = Array.from(stored, (tensor): GgufTensor => {
    const { name, shape } = tensor;
    const isTurned = turns && /\.self_attn\.[qk]_proj\./.test(name);
    const read = async () => {
      const data = await readTensor(tensor);
      return isTurned ? asNeighbours(data, config.headDim, rowLength(shape)) : data;
    };
    return { name: ggufName(name), shape, read };
  });
  const { ropeScaling, ...unscaled } = config;
  if (ropeScaling?.type !== 'llama3') return tensors;
  const frequencies = ropeFrequencies(config);
  const factors = ropeFrequencies(unscaled).map((frequency, i) => frequency / (frequencies[i] ?? frequency));
  return [...tensors, { name: 'rope_freqs.weight', shape: [factors.length], read: async () => factors }];
}

/** Reorders the rows of each head: the element that was turned with the one half a head further comes next to it. */
function asNeighbours(data: Float32Array, headDim: number, columns: number): Float32Array {
  const turned = new Float32Array(data.length);
  for (let row = 0; row < data.length / columns; row++) {
    const i = row % headDim;
    const from = row - i + Math.floor(i / 2) + (i % 2) * (headDim / 2);
    turned.set(data.subarray(from * columns, (from + 1) * columns), row * columns);
  }
  return turned;
}

const parts: Readonly<Record<string, string>> = {
  'model.embed_tokens': 'token_embd',
  'model.norm': 'output_norm',
  lm_head: 'output',
  input_layernorm: 'attn_norm',
  post_attention_layernorm: 'ffn_norm',
  'self_attn.q_proj': 'attn_q',
  'self_attn.k_proj': 'attn_k',
  'self_attn.v_proj': 'attn_v',
  'self_attn.o_proj': 'attn_output',
  'self_attn.q_norm': 'attn_q_norm',
  'self_attn.k_norm': 'attn_k_norm',
  'mlp.gate_proj': 'ffn_gate',
  'mlp.up_proj': 'ffn_up',
  'mlp.down_proj': 'ffn_down',
};

/** llama.cpp's name of a tensor. @throws CheckpointError when llama.cpp has no name for it */
export function ggufName(name: string): string {
  const [, layer, module = '', kind = ''] = /^(?:model\.layers\.(\d+)\.)?(.+)\.(weight|bias)$/.exec(name) ?? [];
  const part = parts[module];
  if (part === undefined) throw new CheckpointError(`tensor "${name}" has no name in a GGUF file`);
  return layer === undefined ? `${part}.${kind}` : `blk.${layer}.${part}.${kind}`;
}
