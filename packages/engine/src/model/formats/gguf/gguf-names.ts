/** llama.cpp's names of a decoder's sizes and tensors, for both directions. */
import { CheckpointError } from '../../../errors.js';
import type { Architecture } from '../model-config.js';

/** The keys of a decoder's metadata, after the family's name and a dot. */
export const KEYS = {
  layers: 'block_count',
  context: 'context_length',
  width: 'embedding_length',
  feedForward: 'feed_forward_length',
  heads: 'attention.head_count',
  kvHeads: 'attention.head_count_kv',
  keyDim: 'attention.key_length',
  valueDim: 'attention.value_length',
  normEpsilon: 'attention.layer_norm_rms_epsilon',
  ropeBase: 'rope.freq_base',
  rotated: 'rope.dimension_count',
  ropeScaling: 'rope.scaling.type',
  ropeFactor: 'rope.scaling.factor',
  oldRopeFactor: 'rope.scale_linear',
  vocabSize: 'vocab_size',
} as const;

/** The tensor of the factors by which Llama 3 divides the frequencies of positions, [headDim / 2]. */
export const ROPE_FACTORS = 'rope_freqs.weight';

/**
 * Whether llama.cpp stores the rows of a tensor in another order. In Llama and SmolLM3 models it rotates neighbours, in
 * the other families halves of a head. Layers of SmolLM3 without rotation have this order too.
 */
export const isReordered = (architecture: Architecture, name: string): boolean =>
  (architecture === 'llama' || architecture === 'smollm3') && /\.self_attn\.[qk]_proj\./.test(name);

/**
 * Reorders the rows of whole heads: rows that are rotated together are neighbours in llama.cpp's order, and lie half a
 * head apart in the other one.
 */
export function reordered<Data extends Float32Array | Uint8Array>(
  data: Data,
  to: 'neighbours' | 'halves',
  headRows: number,
  rowLength: number,
): Data {
  const copy = data.slice() as Data;
  for (let row = 0; row < data.length / rowLength; row++) {
    const i = row % headRows;
    const apart = row - i + Math.floor(i / 2) + (i % 2) * (headRows / 2);
    const [from, place] = to === 'neighbours' ? [apart, row] : [row, apart];
    copy.set(data.subarray(from * rowLength, (from + 1) * rowLength), place * rowLength);
  }
  return copy;
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
