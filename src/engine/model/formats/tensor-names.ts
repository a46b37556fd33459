/** The names and shapes of the tensors in a Hugging Face checkpoint of the families that the engine reads. */
import type { DecoderConfig, ProjectionName } from '../../contract/architecture.js';
import { type LayerTensors, MATRICES, type Matrix, matrixShapes } from '../decoder/weights/decoder-tensors.js';
import type { TensorShape } from './tensor.js';

export const EMBEDDING = 'model.embed_tokens.weight'; // [V, d]
export const FINAL_NORM = 'model.norm.weight'; // [d]
export const OUTPUT = 'lm_head.weight'; // [V, d], if it is not the embedding

/** A linear layer: weight [outputs, inputs]. */
export interface LinearLayer {
  readonly name: string;
  readonly outputs: number;
  readonly inputs: number;
}

const modules: Readonly<Record<ProjectionName, string>> = {
  q: 'self_attn.q_proj',
  k: 'self_attn.k_proj',
  v: 'self_attn.v_proj',
  o: 'self_attn.o_proj',
  gate: 'mlp.gate_proj',
  up: 'mlp.up_proj',
  down: 'mlp.down_proj',
};

/** The name of a projection inside its block and in lists of modules, such as `q_proj`. */
export function moduleName(projection: ProjectionName): string {
  return modules[projection].replace(/^.*\./, '');
}

/** The full name of a projection of layer `index`. */
export function projectionName(projection: ProjectionName, index: number): string {
  return `model.layers.${index}.${modules[projection]}`;
}

/** The linear layers of layer `index`, by the engine's matrix that holds them side by side. */
export function projections(config: DecoderConfig, index: number): Record<Matrix, LinearLayer[]> {
  const shapes = matrixShapes(config);
  const of = (matrix: Matrix) => {
    const { inputs, parts } = shapes[matrix];
    return parts.map(({ projection, outputs }) => ({ name: projectionName(projection, index), outputs, inputs }));
  };
  return { qkv: of('qkv'), attentionOut: of('attentionOut'), gateUp: of('gateUp'), down: of('down') };
}

type Norm = keyof LayerTensors & `${string}Norm`;

/** The norms of layer `index`: the engine's name, the file's name and the length. */
export function layerNorms(
  { width, headDim, queryKeyNorm, resultNorms }: DecoderConfig,
  index: number,
): { readonly norm: Norm; readonly name: string; readonly length: number }[] {
  const at = (norm: Norm, module: string, length = width) => ({
    norm,
    name: `model.layers.${index}.${module}.weight`,
    length,
  });
  // Llama names the norm before the feed-forward layer after its place behind attention. Gemma has one there too.
  return [
    at('attentionNorm', 'input_layernorm'),
    at('feedForwardNorm', resultNorms ? 'pre_feedforward_layernorm' : 'post_attention_layernorm'),
    ...(queryKeyNorm ? [at('queryNorm', 'self_attn.q_norm', headDim), at('keyNorm', 'self_attn.k_norm', headDim)] : []),
    ...(resultNorms
      ? [
          at('attentionResultNorm', 'post_attention_layernorm'),
          at('feedForwardResultNorm', 'post_feedforward_layernorm'),
        ]
      : []),
  ];
}

/** Every tensor that a checkpoint of this decoder must hold. */
export function expectedTensors(config: DecoderConfig): TensorShape[] {
  const { vocabSize, width } = config;
  const tensors: TensorShape[] = [
    { name: EMBEDDING, shape: [vocabSize, width] },
    { name: FINAL_NORM, shape: [width] },
  ];
  if (config.untiedOutput) tensors.push({ name: OUTPUT, shape: [vocabSize, width] });
  for (let index = 0; index < config.layers; index++) {
    const layer = projections(config, index);
    for (const { name, outputs, inputs } of MATRICES.flatMap((matrix) => layer[matrix])) {
      tensors.push({ name: `${name}.weight`, shape: [outputs, inputs] });
    }
    for (const { name, outputs } of biased(config, layer)) tensors.push({ name: `${name}.bias`, shape: [outputs] });
    for (const { name, length } of layerNorms(config, index)) tensors.push({ name, shape: [length] });
  }
  return tensors;
}

function biased({ attentionBias }: DecoderConfig, { qkv, attentionOut }: Record<Matrix, LinearLayer[]>): LinearLayer[] {
  if (attentionBias === undefined) return [];
  return attentionBias === 'qkv' ? qkv : [...qkv, ...attentionOut];
}
