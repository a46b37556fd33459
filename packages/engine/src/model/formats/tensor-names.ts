/** The names and shapes of the tensors in a Hugging Face checkpoint of the families that the engine reads. */
import type { DecoderConfig } from '../../contract/architecture.js';
import {
  byMatrix,
  convolves,
  type LayerProjection,
  type LayerTensors,
  MATRICES,
  type Matrix,
  matrixShapes,
} from '../decoder/weights/decoder-tensors.js';
import type { TensorShape } from './tensor.js';

export const EMBEDDING = 'model.embed_tokens.weight'; // [V, d]
export const OUTPUT = 'lm_head.weight'; // [V, d], if it is not the embedding

/** A linear layer: weight [outputs, inputs]. */
export interface LinearLayer {
  readonly name: string;
  readonly outputs: number;
  readonly inputs: number;
}

/** The final norm [d]. */
export const finalNormName = ({ convolution }: DecoderConfig): string =>
  convolution === undefined ? 'model.norm.weight' : 'model.embedding_norm.weight';

type Modules = Readonly<Record<Exclude<LayerProjection, 'in'>, string>> & { readonly in?: string };

const llama: Modules = {
  q: 'self_attn.q_proj',
  k: 'self_attn.k_proj',
  v: 'self_attn.v_proj',
  o: 'self_attn.o_proj',
  gate: 'mlp.gate_proj',
  up: 'mlp.up_proj',
  down: 'mlp.down_proj',
};
const lfm2: Modules = {
  ...llama,
  o: 'self_attn.out_proj',
  gate: 'feed_forward.w1',
  up: 'feed_forward.w3',
  down: 'feed_forward.w2',
  in: 'conv.in_proj',
};

const namesIn = (modules: Modules) =>
  Object.entries(modules).map(
    ([projection, name]) => [name.replace(/^.*\./, ''), projection as LayerProjection] as const,
  );

/** The projections of all families by their names inside their blocks and in lists of modules, such as `q_proj`. */
export const namedProjections: ReadonlyMap<string, LayerProjection> = new Map([...namesIn(llama), ...namesIn(lfm2)]);

/** The projections of all families by their names behind the layer, such as `self_attn.q_proj`. */
export const blockNames: readonly (readonly [name: string, projection: LayerProjection])[] = [
  ...[...Object.entries(llama), ...Object.entries(lfm2)].map(
    ([projection, name]) => [name, projection as LayerProjection] as const,
  ),
  ['conv.out_proj', 'o'],
];

export const projectionsOf = ({ convolution }: DecoderConfig) => namesIn(convolution === undefined ? llama : lfm2);

export function projectionName(config: DecoderConfig, projection: LayerProjection, index: number): string {
  const { [projection]: module } = config.convolution === undefined ? llama : lfm2;
  const inBlock = projection === 'o' && convolves(config, index) ? 'conv.out_proj' : module;
  return `model.layers.${index}.${inBlock}`;
}

/** The linear layers of layer `index`, by the engine's matrix that holds them side by side. */
export function projections(config: DecoderConfig, index: number): Record<Matrix, LinearLayer[]> {
  const shapes = matrixShapes(config, index);
  return byMatrix((matrix) => {
    const { inputs, parts } = shapes[matrix];
    return parts.map(({ projection, outputs }) => ({
      name: projectionName(config, projection, index),
      outputs,
      inputs,
    }));
  });
}

type Norm = keyof LayerTensors & `${string}Norm`;

/** The norms of layer `index`: the engine's name, the file's name and the length. */
export function layerNorms(
  config: DecoderConfig,
  index: number,
): { readonly norm: Norm; readonly name: string; readonly length: number }[] {
  const { width, headDim, queryKeyNorm, resultNorms, convolution } = config;
  const at = (norm: Norm, module: string, length = width) => ({
    norm,
    name: `model.layers.${index}.${module}.weight`,
    length,
  });
  if (convolution !== undefined) {
    const both = [at('attentionNorm', 'operator_norm'), at('feedForwardNorm', 'ffn_norm')];
    if (convolves(config, index)) return both;
    const [query, key] = ['self_attn.q_layernorm', 'self_attn.k_layernorm'];
    return [...both, at('queryNorm', query, headDim), at('keyNorm', key, headDim)];
  }
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

/** The weights of layer `index`'s convolution as a file has them; undefined if it attends. */
export function convolutionShape(config: DecoderConfig, index: number): TensorShape | undefined {
  const { convolution, width } = config;
  if (convolution === undefined || !convolves(config, index)) return undefined;
  return { name: `model.layers.${index}.conv.conv.weight`, shape: [width, 1, convolution.taps] };
}

/** Every tensor that a checkpoint of this decoder must hold. */
export function expectedTensors(config: DecoderConfig): TensorShape[] {
  const { vocabSize, width } = config;
  const tensors: TensorShape[] = [
    { name: EMBEDDING, shape: [vocabSize, width] },
    { name: finalNormName(config), shape: [width] },
  ];
  if (config.untiedOutput) tensors.push({ name: OUTPUT, shape: [vocabSize, width] });
  for (let index = 0; index < config.layers; index++) {
    const layer = projections(config, index);
    for (const { name, outputs, inputs } of MATRICES.flatMap((matrix) => layer[matrix])) {
      tensors.push({ name: `${name}.weight`, shape: [outputs, inputs] });
    }
    for (const { name, outputs } of biased(config, layer)) tensors.push({ name: `${name}.bias`, shape: [outputs] });
    for (const { name, length } of layerNorms(config, index)) tensors.push({ name, shape: [length] });
    const convolution = convolutionShape(config, index);
    if (convolution !== undefined) tensors.push(convolution);
  }
  return tensors;
}

function biased({ attentionBias }: DecoderConfig, { qkv, attentionOut }: Record<Matrix, LinearLayer[]>): LinearLayer[] {
  if (attentionBias === undefined) return [];
  return attentionBias === 'qkv' ? qkv : [...qkv, ...attentionOut];
}
