/** The memory that the engine takes, from the sizes of models alone. */

import type { Footprint, MemoryPlan, PlannedPolicy } from '../../backends/backend-declaration.js';
import type { AdapterSettings, DecoderConfig, Precision } from '../../contract/architecture.js';
import type { OptimizerSettings } from '../../contract/optimizer-settings.js';
import { BATCH_ROWS } from '../../model/decoder/decoder.js';
import { logitBlockRows } from '../../model/decoder/output-head.js';
import { cacheShape } from '../../model/decoder/sampling/key-value-cache.js';
import { adaptedMatrices, adapterParameterCount } from '../../model/decoder/weights/adapter-tensors.js';
import { matrixShapes, parameterCount, qkvWidth } from '../../model/decoder/weights/decoder-tensors.js';
import { usedBuffers } from '../../model/optimizers/index.js';
import type { MatrixKind } from '../../tensor/kernel-arguments.js';

const FLOAT = 4;

/** Bytes of a number that products read. */
const PACKED: Readonly<Record<Precision, number>> = { float32: FLOAT, bfloat16: FLOAT / 2 };

export interface FootprintRequest {
  readonly config: DecoderConfig;
  readonly adapter?: AdapterSettings | undefined;
  readonly precision: Precision;
  readonly optimizer: OptimizerSettings;
  /** The number of agents that share the policy. Each agent's share of the gradient is measured. */
  readonly agents: number;
  /** Published versions that can be sampled at the same time. */
  readonly versions: number;
  /** Longest sequence that is trained on. */
  readonly longest: number;
  /** Layers are computed again in the backward pass; only their inputs are kept. */
  readonly recompute: boolean;
}

/** Memory of a run. All adapters on a base share the base and its key-value cache. */
export function memoryPlan(
  { recompute }: { readonly recompute: boolean },
  planned: readonly PlannedPolicy[],
  longest: number,
): MemoryPlan {
  const policies: Record<string, Footprint> = {};
  const bases = new Map<string, PlannedBase>();
  let [cache, trained] = [0, 0];
  for (const { name, config, adapter, precision, optimizer, agents, versions } of planned) {
    if (config === undefined) continue;
    const request = { config, adapter: adapter?.settings, precision, optimizer, agents, versions, longest, recompute };
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

/** A base that adapters share, and the precisions of these. */
export interface PlannedBase {
  readonly config: DecoderConfig;
  readonly kept: MatrixKind;
  readonly precisions: Set<Precision>;
}

export function policyFootprint(request: FootprintRequest): Footprint {
  const { config, adapter, precision, optimizer, agents, versions, ...batch } = request;
  const count = adapter === undefined ? parameterCount(config) : adapterParameterCount(config, adapter);
  const packed = adapter === undefined ? packedFloats(config) : packedAdapterFloats(config, adapter);
  return {
    // The trainer's and the sampler's weights, each with its packed form; the trainer's packed form of the backward
    // pass; the published copy; the other kept versions, each with its packed form.
    weights: (versions + 2) * (FLOAT * count + PACKED[precision] * packed),
    gradients: FLOAT * count * (agents > 1 ? 2 : 1),
    optimizer: FLOAT * count * usedBuffers(optimizer).length,
    activations: FLOAT * activationFloats(config, adapter, batch),
  };
}

/**
 * Bytes of a base that adapters share: its weights, and their packed forms for the forward and the backward pass.
 * Norms and biases are always in float32.
 */
export function baseFootprint({ config, kept, precisions }: PlannedBase): number {
  const packed = packedFloats(config);
  const matrices = packed + (config.untiedOutput ? config.vocabSize * config.width : 0);
  const others = parameterCount(config) - matrices;
  const bytes = PACKED[kept];
  const packings = [...precisions].map((precision) => Math.min(bytes, PACKED[precision]));
  return FLOAT * others + bytes * matrices + 2 * packed * packings.reduce((sum, each) => sum + each, 0);
}

/**
 * Bytes of the keys and values of the sequences that are sampled at the same time, for one whole policy or for all
 * adapters on a base.
 * @param longest Tokens of the longest sequence
 */
export function cacheFootprint(config: DecoderConfig, longest: number): number {
  const floatsOf = (capacity: number) => capacity * config.kvHeads * config.headDim;
  const { capacity, slots } = cacheShape(config, longest, floatsOf);
  return 2 * FLOAT * config.layers * slots * floatsOf(capacity);
}

/** The matrices in the form that products read. */
function packedFloats(config: DecoderConfig): number {
  const layer = Object.values(matrixShapes(config)).reduce((sum, { inputs, outputs }) => sum + inputs * outputs, 0);
  return config.layers * layer + config.vocabSize * config.width;
}

function packedAdapterFloats(config: DecoderConfig, adapter: AdapterSettings): number {
  const matrices = adaptedMatrices(config, adapter);
  const layer = matrices.reduce((sum, { inputs, outputs, width }) => sum + width * (inputs + outputs), 0);
  return config.layers * layer;
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
  const rows = Math.max(BATCH_ROWS, longest);
  const { width, heads, kvHeads, headDim, feedForward, layers, vocabSize, queryKeyNorm } = config;
  const attended = heads * headDim;
  const lowRank =
    adapter === undefined ? 0 : adaptedMatrices(config, adapter).reduce((sum, each) => sum + each.width, 0);
  const headNorms = queryKeyNorm ? qkvWidth(config) + heads + kvHeads : 0;
  const layer = 4 * width + qkvWidth(config) + attended + heads + 3 * feedForward + headNorms + lowRank + 2;
  const backward = 3 * feedForward + 4 * width + 2 * attended + qkvWidth(config);
  const logits = 2 * Math.min(rows, logitBlockRows(vocabSize)) * vocabSize;
  const kept = recompute ? 2 * layer + layers * width : layers * layer; // the last layer's are always kept
  return rows * (kept + 2 * width + backward + layer) + logits; // the last `layer` is for reading prompts
}
