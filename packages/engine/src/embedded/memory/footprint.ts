/** The memory that the engine takes, from the sizes of models alone. */

import type { Footprint, MemoryPlan, PlannedPolicy } from '../../backends/backend-declaration.js';
import type { AdapterSettings, DecoderConfig, Precision } from '../../contract/architecture.js';
import { packsTrees } from '../../model/decoder/decoder.js';
import { batchRows, layerFloats } from '../../model/decoder/layer/layer-buffers.js';
import { logitBlockRows } from '../../model/decoder/output-head.js';
import { mostTreeRows } from '../../model/decoder/packed-batch.js';
import { cacheShape, slotFloats } from '../../model/decoder/sampling/key-value-cache.js';
import { adaptedMatrices, adapterParameterCount } from '../../model/decoder/weights/adapter-tensors.js';
import {
  type BaseKind,
  type BlockFormats,
  layersOf,
  MATRICES,
  matrixShapes,
  parameterCount,
  projectedWidth,
} from '../../model/decoder/weights/decoder-tensors.js';
import { requireBlocks } from '../../model/decoder/weights/model-weights.js';
import { usedBuffers } from '../../model/optimizers/index.js';
import { type BlockFormat, blockWords } from '../../tensor/blocks.js';

const FLOAT = 4;

/** Bytes of a number that products read, of matrices that are not in blocks. */
const PACKED: Readonly<Record<Precision, number>> = { float32: FLOAT, bfloat16: FLOAT / 2, int8: FLOAT };

export interface FootprintRequest extends Pick<PlannedPolicy, 'agentAdapters' | 'optimizer' | 'agents' | 'versions'> {
  readonly config: DecoderConfig;
  readonly adapter?: AdapterSettings | undefined;
  readonly precision: Precision;
  /** Longest sequence that is trained on. */
  readonly longest: number;
  /** Layers are computed again in the backward pass; only their inputs are kept. */
  readonly recompute: boolean;
}

/**
 * Memory of a run. All adapters on a base share the base and its key-value cache.
 * @throws BackendError for a policy in int8 whose base is not in blocks
 */
export function memoryPlan(
  { recompute }: { readonly recompute: boolean },
  planned: readonly PlannedPolicy[],
  longest: number,
): MemoryPlan {
  const policies: Record<string, Footprint> = {};
  const bases = new Map<string, PlannedBase>();
  let [cache, trained] = [0, 0];
  for (const { name, config, adapter, ...policy } of planned) {
    if (config === undefined) continue;
    const { precision = 'float32', versions } = policy;
    requireBlocks(name, precision, typeof adapter?.kept === 'object');
    const request = { ...policy, precision, config, adapter: adapter?.settings, longest, recompute };
    const footprint = policyFootprint(request);
    policies[name] = footprint;
    trained += Object.values(footprint).reduce((sum, bytes) => sum + bytes, 0);
    if (adapter === undefined) cache += versions * cacheFootprint(config, longest);
    else {
      const { precisions } = bases.get(adapter.base) ?? { precisions: new Set() };
      bases.set(adapter.base, { config, kept: adapter.kept, precisions: precisions.add(precision) });
    }
  }
  if (planned.some(({ config }) => config === undefined)) return { policies };
  const shared = [...bases.values()];
  const baseBytes = shared.reduce((sum, base) => sum + baseFootprint(base), 0);
  cache += shared.reduce((sum, { config, precisions }) => sum + precisions.size * cacheFootprint(config, longest), 0);
  return { policies, total: { bases: baseBytes, cache, total: trained + baseBytes + cache } };
}

export interface PlannedBase {
  readonly config: DecoderConfig;
  readonly kept: BaseKind;
  readonly precisions: Set<Precision>;
}

export function policyFootprint(request: FootprintRequest): Footprint {
  const { config, adapter, agentAdapters, precision, optimizer, agents, versions, ...batch } = request;
  const [ofAgents, packedOfAgents] =
    agentAdapters === undefined
      ? [0, 0]
      : [adapterParameterCount(config, agentAdapters), packedAdapterFloats(config, agentAdapters)];
  const whole = adapter === undefined ? parameterCount(config) : adapterParameterCount(config, adapter);
  const packedWhole = adapter === undefined ? packedFloats(config) : packedAdapterFloats(config, adapter);
  const [count, packed] = [whole + agents * ofAgents, packedWhole + agents * packedOfAgents];
  return {
    // The trainer's and the sampler's weights, each with its packed form; the trainer's packed form of the backward
    // pass; the published copy; the other kept versions, each with its packed form.
    weights: (versions + 2) * (FLOAT * count + PACKED[precision] * packed),
    gradients: FLOAT * count * (agents > 1 ? 2 : 1),
    optimizer: FLOAT * count * usedBuffers(optimizer).length,
    activations: FLOAT * activationFloats(config, adapter ?? agentAdapters, batch),
  };
}

/**
 * Bytes of a base that adapters share: its weights, and their packed forms for the forward and the backward pass.
 * Norms and biases are always in float32. In float32 the layers' matrices exist in packed form only. Products in
 * float32 and int8 read blocks as they are stored.
 */
export function baseFootprint({ config, kept, precisions }: PlannedBase): number {
  const packed = packedFloats(config);
  const table = config.vocabSize * config.width;
  const matrices = packed + (config.untiedOutput ? table : 0);
  const others = parameterCount(config) - matrices;
  if (typeof kept !== 'string') {
    const rounded = [...precisions].filter((precision) => precision === 'bfloat16').length;
    return FLOAT * others + blockBytes(config, kept) + 2 * packed * rounded * PACKED.bfloat16;
  }
  const bytes = PACKED[kept];
  const packings = [...precisions].map((precision) => Math.min(bytes, PACKED[precision]));
  const plain = kept === 'float32' && precisions.has('float32') ? matrices - (packed - table) : matrices;
  return FLOAT * others + bytes * plain + 2 * packed * packings.reduce((sum, each) => sum + each, 0);
}

function blockBytes(config: DecoderConfig, { embedding, layers, output }: BlockFormats): number {
  const table = { inputs: config.width, outputs: config.vocabSize };
  const bytes = (format: BlockFormat, { inputs, outputs }: typeof table) => 4 * blockWords({ format, inputs, outputs });
  const ofLayers = layers.flatMap((layer, l) => {
    const shapes = matrixShapes(config, l);
    return MATRICES.map((matrix) => bytes(layer[matrix], shapes[matrix]));
  });
  const tables = [embedding, ...(config.untiedOutput ? [output] : [])].map((format) => bytes(format, table));
  return [...ofLayers, ...tables].reduce((sum, each) => sum + each, 0);
}

/**
 * Bytes of the keys and values of the sequences that are sampled at the same time, for one whole policy or for all
 * adapters on a base.
 * @param longest Tokens of the longest sequence
 */
export function cacheFootprint(config: DecoderConfig, longest: number): number {
  const floatsOf = (capacity: number) => slotFloats(config, capacity, capacity * config.kvHeads * config.headDim);
  const { capacity, slots } = cacheShape(config, longest, floatsOf);
  return FLOAT * slots * floatsOf(capacity);
}

/** The matrices in the form that products read. */
function packedFloats(config: DecoderConfig): number {
  const matrices = layersOf(config).flatMap((layer) => Object.values(matrixShapes(config, layer)));
  const layers = matrices.reduce((sum, { inputs, outputs }) => sum + inputs * outputs, 0);
  return layers + config.vocabSize * config.width;
}

function packedAdapterFloats(config: DecoderConfig, adapter: AdapterSettings): number {
  const matrices = layersOf(config).flatMap((layer) => adaptedMatrices(config, layer, adapter));
  return matrices.reduce((sum, { inputs, outputs, width }) => sum + width * (inputs + outputs), 0);
}

/**
 * Memory for a batch of rows: the activations that each layer keeps for the backward pass, the buffers of the backward
 * pass itself, and one layer of a prompt. Numbers of 4 bytes.
 */
function activationFloats(
  config: DecoderConfig,
  adapter: AdapterSettings | undefined,
  { longest, recompute }: Pick<FootprintRequest, 'longest' | 'recompute'>,
): number {
  const { width, heads, headDim, feedForward, layers, vocabSize } = config;
  const most = batchRows(config, adapter, recompute);
  const rows = packsTrees(config) ? mostTreeRows(most, longest) : Math.max(most, longest);
  const layer = layerFloats(config, adapter);
  const attended = heads * headDim;
  const backward = 3 * feedForward + 4 * width + 2 * attended + projectedWidth(config);
  const results = config.resultNorms ? 2 * width : 0;
  const logits = 2 * Math.min(rows, logitBlockRows(vocabSize)) * vocabSize;
  const kept = recompute ? 2 * layer + layers * width : layers * layer; // the last layer's are always kept
  return rows * (kept + 2 * width + backward + results + layer) + logits; // the last `layer` is for reading prompts
}
