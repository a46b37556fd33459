/**
 * The buffers of a layer's passes. R rows attend; K of them are kept after attention: all, or those that predict a
 * token.
 */
import type { AdapterSettings, DecoderConfig } from '../../../contract/architecture.js';
import type { Arena } from '../../../tensor/arena.js';
import type { Kernels } from '../../../tensor/kernels.js';
import type { Floats, Integers } from '../../../tensor/memory.js';
import { adaptedMatrices } from '../weights/adapter-tensors.js';
import { byMatrix, layersOf, type Matrix, projectedWidth } from '../weights/decoder-tensors.js';
import type { PackedAdapter } from '../weights/packed-adapter.js';
import type { AdaptedRows, AdapterScratch } from './matrix-products.js';

/**
 * The rows of a layer: R that attend, and the K of them that are kept after attention; all if `kept` is undefined.
 */
export interface LayerRows {
  readonly rows: number;
  readonly positions: Integers; // [R]
  readonly kept: Integers | undefined; // [K]
}

type RowCounts = Pick<LayerRows, 'rows' | 'kept'>;

export const keptCount = ({ rows, kept }: RowCounts): number => kept?.length ?? rows;

export interface LayerBuffers {
  readonly input: Floats; // [R, width]
  readonly normed: Floats; // [R, width]
  readonly inverse: Floats; // [R]
  readonly qkv: Floats; // [R, (heads + 2 kvHeads) headDim], of a layer that convolves [R, 3 · width]
  readonly attended: Floats; // [R, heads · headDim]
  readonly logSumExp: Floats; // [R, heads]
  /** The kept rows of `input` and `attended`; the same buffers if all are kept. */
  readonly keptInput: Floats; // [K, width]
  readonly keptAttended: Floats; // [K, heads · headDim]
  readonly middle: Floats; // [K, width]
  readonly middleNormed: Floats; // [K, width]
  readonly middleInverse: Floats; // [K]
  readonly gateUp: Floats; // [K, 2 · feedForward]
  readonly activated: Floats; // [K, feedForward]
  // For models that normalise queries and keys:
  readonly projected: Floats; // [R, (heads + 2 kvHeads) headDim], qkv before the normalisation
  readonly queryInverse: Floats; // [R, heads]
  readonly keyInverse: Floats; // [R, kvHeads]
  // For models that normalise the results of attention and of the feed-forward layer: these, and the inverses.
  readonly attentionResult: Floats; // [K, width]
  readonly attentionResultInverse: Floats; // [K]
  readonly feedForwardResult: Floats; // [K, width]
  readonly feedForwardResultInverse: Floats; // [K]
  /** For adapted matrices: x A, [R or K, n · rank]. */
  readonly downProjected: Readonly<Record<Matrix, Floats>>;
}

export interface LayerShape {
  readonly config: DecoderConfig;
  readonly rows: RowCounts;
  readonly adapters: readonly AdaptedRows[];
  /** True lets the residual stream use one buffer throughout, for passes without a backward pass. */
  readonly inPlace: boolean;
}

/**
 * The most rows of a batch: enough to keep every kernel busy, few enough for a small model's activations to stay in
 * cache.
 */
const MOST_ROWS = 1024;
/** The fewest that `batchRows` gives, so that reading a large model's weights is shared by many rows. */
const LEAST_ROWS = 192;
/** The most bytes that all layers keep of a batch, unless that are too few rows. */
const KEPT_BYTES = 256 * 2 ** 20;

/** The widths of all down-projections of a layer. */
const adapted = (config: DecoderConfig, layer: number, adapter: AdapterSettings) =>
  adaptedMatrices(config, layer, adapter).reduce((sum, { width }) => sum + width, 0);

/** The numbers that one layer keeps of a row for its backward pass, at most. */
export function layerFloats(config: DecoderConfig, adapter: AdapterSettings | undefined): number {
  const { width, heads, kvHeads, headDim, feedForward, queryKeyNorm, resultNorms } = config;
  const lowRank =
    adapter === undefined ? 0 : Math.max(...layersOf(config).map((layer) => adapted(config, layer, adapter)));
  const projected = projectedWidth(config);
  const headNorms = queryKeyNorm ? projected + heads + kvHeads : 0;
  const results = resultNorms ? 2 * width + 2 : 0;
  return 4 * width + projected + heads * headDim + heads + 3 * feedForward + headNorms + results + lowRank + 2;
}

export function batchRows(config: DecoderConfig, adapter: AdapterSettings | undefined, recompute: boolean): number {
  const kept = config.layers * (recompute ? config.width : layerFloats(config, adapter));
  return Math.min(MOST_ROWS, Math.max(LEAST_ROWS, Math.floor(KEPT_BYTES / (4 * kept))));
}

export function layerBuffers(
  arena: Arena,
  input: Floats,
  { config, rows: { rows, kept }, adapters, inPlace }: LayerShape,
): LayerBuffers {
  const { width, heads, kvHeads, headDim, feedForward } = config;
  const headRows = config.queryKeyNorm ? rows : 0;
  const count = keptCount({ rows, kept });
  const results = config.resultNorms ? count : 0;
  const attended = arena.take(rows * heads * headDim);
  const keptInput = kept === undefined ? input : arena.take(count * width);
  return {
    input,
    normed: arena.take(rows * width),
    inverse: arena.take(rows),
    qkv: arena.take(rows * projectedWidth(config)),
    attended,
    logSumExp: arena.take(rows * heads),
    keptInput,
    keptAttended: kept === undefined ? attended : arena.take(count * heads * headDim),
    middle: inPlace ? keptInput : arena.take(count * width),
    middleNormed: arena.take(count * width),
    middleInverse: arena.take(count),
    gateUp: arena.take(count * 2 * feedForward),
    activated: arena.take(count * feedForward),
    projected: arena.take(inPlace ? 0 : headRows * projectedWidth(config)),
    queryInverse: arena.take(headRows * heads),
    keyInverse: arena.take(headRows * kvHeads),
    attentionResult: arena.take(results * width),
    attentionResultInverse: arena.take(results),
    feedForwardResult: arena.take(results * width),
    feedForwardResultInverse: arena.take(results),
    downProjected: byMatrix((matrix) =>
      arena.take((matrix === 'qkv' ? rows : count) * largestAdapter(adapters, matrix)),
    ),
  };
}

/** The largest n · rank of the adapters of a matrix. */
function largestAdapter(adapters: readonly AdaptedRows[], matrix: Matrix): number {
  const matrices = adapters.flatMap(({ adapter }) => adapter?.matrices.filter((each) => each.matrix === matrix) ?? []);
  return Math.max(0, ...matrices.map(({ width }) => width));
}

/** The buffers that the backward passes of all layers use in turn. */
export interface BackwardBuffers extends AdapterScratch {
  readonly dActivated: Floats; // [R, feedForward]
  readonly dGateUp: Floats; // [R, 2 · feedForward]
  readonly dNormed: Floats; // [R, width]
  readonly dResult: Floats; // [R, width], for models that normalise results
  readonly dAttended: Floats; // [R, heads · headDim]
  readonly dKeptAttended: Floats; // [R, heads · headDim], for a layer that keeps some of its rows
  readonly dQkv: Floats; // as `qkv` of `LayerBuffers`
  readonly ones: Floats; // [R] with biases: a bias's gradient is ones [1, R] times that of the layer's output
  // Written for gains and taps that are not trained, never read; empty if kernels leave such gradients out:
  readonly dGain: Floats; // [width or headDim]
  readonly dKeyGain: Floats; // [headDim]
  readonly dTaps: Floats; // [taps, width]
}

export function backwardBuffers(
  kernels: Kernels,
  arena: Arena,
  config: DecoderConfig,
  rows: number,
  adapters: readonly AdaptedRows[],
): BackwardBuffers {
  const largest = (size: (matrix: PackedAdapter['matrices'][number]) => number) =>
    Math.max(0, ...adapters.flatMap(({ adapter }) => adapter?.matrices.map(size) ?? []));
  const unread = adapters.length > 0 && kernels.fused === undefined;
  const filled = (length: number, value: number) => {
    const memory = arena.take(length);
    kernels.fill({ x: memory, value });
    return memory;
  };
  return {
    dActivated: arena.take(rows * config.feedForward),
    dGateUp: arena.take(rows * 2 * config.feedForward),
    dNormed: arena.take(rows * config.width),
    dResult: arena.take(config.resultNorms ? rows * config.width : 0),
    dAttended: arena.take(rows * config.heads * config.headDim),
    dKeptAttended: arena.take(rows * config.heads * config.headDim),
    dQkv: arena.take(rows * projectedWidth(config)),
    ones: filled(config.attentionBias === undefined ? 0 : rows, 1),
    dDownProjected: arena.take(rows * largest(({ width }) => width)),
    dBlocks: arena.take(largest(({ width, outputs }) => width * outputs)),
    dGain: filled(unread ? Math.max(config.width, config.headDim) : 0, 0),
    dKeyGain: filled(unread ? config.headDim : 0, 0),
    dTaps: filled(unread ? (config.convolution?.taps ?? 0) * config.width : 0, 0),
  };
}
