/** The names and shapes of the tensors in a Hugging Face checkpoint of the Llama, Qwen2 and Qwen3 families. */
import type { DecoderConfig } from '../../core/backend.js';
import type { TensorShape } from './safetensors.js';

export const EMBEDDING = 'model.embed_tokens.weight'; // [V, d]
export const FINAL_NORM = 'model.norm.weight'; // [d]
export const OUTPUT = 'lm_head.weight'; // [V, d], where it is not the embedding

/** A linear layer: weight [outputs, inputs]. */
export interface Projection {
  readonly name: string;
  readonly outputs: number;
  readonly inputs: number;
}

type ProjectionName = 'query' | 'key' | 'value' | 'attentionOut' | 'gate' | 'up' | 'down';

/** The linear layers of layer `index`. */
export function projections(config: DecoderConfig, index: number): Record<ProjectionName, Projection> {
  const { width, feedForward } = config;
  const queries = config.heads * config.headDim;
  const keys = config.kvHeads * config.headDim;
  const attention = `model.layers.${index}.self_attn`;
  const mlp = `model.layers.${index}.mlp`;
  return {
    query: { name: `${attention}.q_proj`, outputs: queries, inputs: width },
    key: { name: `${attention}.k_proj`, outputs: keys, inputs: width },
    value: { name: `${attention}.v_proj`, outputs: keys, inputs: width },
    attentionOut: { name: `${attention}.o_proj`, outputs: width, inputs: queries },
    gate: { name: `${mlp}.gate_proj`, outputs: feedForward, inputs: width },
    up: { name: `${mlp}.up_proj`, outputs: feedForward, inputs: width },
    down: { name: `${mlp}.down_proj`, outputs: width, inputs: feedForward },
  };
}

/** The gains of the norms of layer `index`: [d] each, and [headDim] where queries and keys are normalised. */
export function normNames(index: number): Record<'attention' | 'feedForward' | 'query' | 'key', string> {
  const layer = `model.layers.${index}`;
  return {
    attention: `${layer}.input_layernorm.weight`,
    feedForward: `${layer}.post_attention_layernorm.weight`,
    query: `${layer}.self_attn.q_norm.weight`,
    key: `${layer}.self_attn.k_norm.weight`,
  };
}

/** Every tensor that a checkpoint of this decoder has to hold. */
export function expectedTensors(config: DecoderConfig): TensorShape[] {
  const { vocabSize, width, headDim } = config;
  const tensors: TensorShape[] = [
    { name: EMBEDDING, shape: [vocabSize, width] },
    { name: FINAL_NORM, shape: [width] },
  ];
  if (config.untiedOutput) tensors.push({ name: OUTPUT, shape: [vocabSize, width] });
  for (let index = 0; index < config.layers; index++) {
    const layer = projections(config, index);
    for (const { name, outputs, inputs } of Object.values(layer)) {
      tensors.push({ name: `${name}.weight`, shape: [outputs, inputs] });
    }
    for (const { name, outputs } of biased(config, layer)) tensors.push({ name: `${name}.bias`, shape: [outputs] });
    const norms = normNames(index);
    for (const name of [norms.attention, norms.feedForward]) tensors.push({ name, shape: [width] });
    if (!config.queryKeyNorm) continue;
    for (const name of [norms.query, norms.key]) tensors.push({ name, shape: [headDim] });
  }
  return tensors;
}

function biased({ attentionBias }: DecoderConfig, layer: Record<ProjectionName, Projection>): Projection[] {
  if (attentionBias === undefined) return [];
  const inputs = [layer.query, layer.key, layer.value];
  return attentionBias === 'qkv' ? inputs : [...inputs, layer.attentionOut];
}
