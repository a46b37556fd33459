/**
 * Attention over the sequences of a batch, in a tree by way of copies: the rows of each branch are gathered as if its
 * sequences stood alone, so every output has the bits that it has without sharing. The gradient of a shared row's
 * output belongs to the first sequence that has the row; the gradients of its queries, keys and values are the sums
 * over all sequences. A layer's short convolution, in attention's place, needs no copies: it finds the tokens before a
 * row by `previous`.
 */
import type { DecoderConfig } from '../../../contract/architecture.js';
import type { Arena } from '../../../tensor/arena.js';
import type { Kernels } from '../../../tensor/kernels.js';
import type { Floats } from '../../../tensor/memory.js';
import type { Branches, PackedBatch } from '../packed-batch.js';
import { convolves, type DecoderTensors, layerHeads, qkvWidth } from '../weights/decoder-tensors.js';
import type { LayerBuffers } from './layer-buffers.js';

type Attended = Pick<LayerBuffers, 'qkv' | 'attended' | 'logSumExp'>;

export interface BatchAttention {
  /** Fills `attended` and `logSumExp` from `qkv`. */
  forward(layer: number, buffers: Attended): void;
  /** Computes the gradient of `qkv` from the gradient of `attended`, and adds to a convolution's gradient. */
  backward(layer: number, saved: Attended, dAttended: Floats, gradients: AttentionGradients): void;
}

interface AttentionGradients {
  readonly dQkv: Floats;
  readonly dTaps: Floats; // [taps, width]
}

type Attending = Pick<PackedBatch, 'rows' | 'previous' | 'starts' | 'sequences' | 'branches'>;

/** @param arena Holds the copies of a tree's rows, for one pass through all layers */
export function batchAttention(
  kernels: Kernels,
  arena: Arena,
  config: DecoderConfig,
  tensors: DecoderTensors,
  batch: Attending,
): BatchAttention {
  const attention = attentionOf(kernels, arena, config, batch);
  const { convolution } = config;
  if (convolution === undefined) return attention;
  const { rows, previous } = batch;
  const sizes = { previous, rows, width: config.width, taps: convolution.taps };
  const weightOf = (layer: number) => (tensors.layers[layer] as DecoderTensors['layers'][number]).convolution;
  return {
    forward(layer, buffers) {
      if (!convolves(config, layer)) return attention.forward(layer, buffers);
      kernels.convolution({ out: buffers.attended, bcx: buffers.qkv, weight: weightOf(layer), ...sizes });
    },
    backward(layer, saved, dOut, gradients) {
      if (!convolves(config, layer)) return attention.backward(layer, saved, dOut, gradients);
      const { dQkv: dBcx, dTaps: dWeight } = gradients;
      kernels.convolutionBackward({ dBcx, dWeight, dOut, bcx: saved.qkv, weight: weightOf(layer), ...sizes });
    },
  };
}

function attentionOf(
  kernels: Kernels,
  arena: Arena,
  config: DecoderConfig,
  { starts, sequences, branches }: Attending,
): BatchAttention {
  const headsOf = (layer: number) => layerHeads(config, layer);
  if (branches === undefined)
    return {
      forward: (layer, { attended: out, logSumExp, qkv }) =>
        kernels.attention({ out, logSumExp, qkv, starts, sequences, heads: headsOf(layer) }),
      backward: (layer, { attended: out, logSumExp, qkv }, dOut, { dQkv }) =>
        kernels.attentionBackward({ dQkv, dOut, out, logSumExp, qkv, starts, sequences, heads: headsOf(layer) }),
    };
  const [queryWidth, rowWidth] = [config.heads * config.headDim, qkvWidth(config)];
  const most = Math.max(...branches.map(({ gathered }) => gathered.length));
  const [qkv, out, logSumExp] = [rowWidth, queryWidth, config.heads].map((width) => arena.take(most * width)) as [
    Floats,
    Floats,
    Floats,
  ];
  let gradients: { readonly dQkv: Floats; readonly dOut: Floats } | undefined;
  const gather = (to: Floats, from: Floats, { gathered }: Branches, width: number) =>
    kernels.embed({ out: to, table: from, tokens: gathered, rows: gathered.length, width });
  return {
    forward(layer, buffers) {
      const heads = headsOf(layer);
      for (const branch of branches) {
        const { first, places, starts: ofBranch, sequences: count } = branch;
        gather(qkv, buffers.qkv, branch, rowWidth);
        kernels.attention({ out, logSumExp, qkv, starts: ofBranch, sequences: count, heads });
        const put = (to: Floats, from: Floats, width: number) =>
          kernels.embed({ out: to.subarray(first * width), table: from, tokens: places, rows: places.length, width });
        if (places.length === 0) continue;
        put(buffers.attended, out, queryWidth);
        put(buffers.logSumExp, logSumExp, config.heads);
      }
    },
    backward(layer, saved, dAttended, { dQkv: dRows }) {
      const heads = headsOf(layer);
      gradients ??= { dQkv: arena.take(most * rowWidth), dOut: arena.take(most * queryWidth) };
      const { dQkv, dOut } = gradients;
      kernels.fill({ x: dRows, value: 0 });
      for (const branch of branches) {
        const { first, places, gathered, starts: ofBranch, sequences: count } = branch;
        gather(qkv, saved.qkv, branch, rowWidth);
        gather(out, saved.attended, branch, queryWidth);
        gather(logSumExp, saved.logSumExp, branch, config.heads);
        kernels.fill({ x: dOut, value: 0 });
        const given = dAttended.subarray(first * queryWidth);
        if (places.length > 0)
          kernels.embedBackward({ dTable: dOut, dOut: given, tokens: places, rows: places.length, width: queryWidth });
        kernels.attentionBackward({ dQkv, dOut, out, logSumExp, qkv, starts: ofBranch, sequences: count, heads });
        const rows = gathered.length;
        kernels.embedBackward({ dTable: dRows, dOut: dQkv, tokens: gathered, rows, width: rowWidth });
      }
    },
  };
}
