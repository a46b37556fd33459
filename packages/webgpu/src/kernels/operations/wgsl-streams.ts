/** Kernels that compute number by number or column by column: positions, short convolutions, gates, embeddings. */
import type { CommandQueue } from '../command-queue.js';
import type { DeviceKernels } from '../device-kernels.js';
import type { DeviceMemory } from '../device-memory.js';
import { inParts } from '../parts.js';
import { numberShader, perNumber } from '../shader.js';
import { copyWithin } from './wgsl-memory.js';

type StreamKernels = Pick<
  DeviceKernels,
  | 'rope'
  | 'convolution'
  | 'convolutionBackward'
  | 'convolutionCached'
  | 'convolutionCopy'
  | 'swiglu'
  | 'swigluBackward'
  | 'geglu'
  | 'gegluBackward'
  | 'embed'
  | 'embedBackward'
>;

/** @param binding The most bytes of a binding. A larger table is processed in parts. */
export function streamKernels(queue: CommandQueue, binding: number): StreamKernels {
  return {
    rope: ({ qkv, table, positions, rows, heads: { heads, kvHeads, headDim }, inverse }) => {
      const [turned, half] = [heads + kvHeads, headDim / 2];
      const numbers = [rows, (heads + 2 * kvHeads) * headDim, turned, half, Number(inverse)];
      queue.run(rotate, numbers, [qkv, table, positions], perNumber(rows * turned * half));
    },
    convolution: ({ out, bcx, weight, previous, rows, width, taps }) =>
      queue.run(convolve, [rows, width, taps], [out, bcx, weight, previous], perNumber(rows * width)),
    convolutionBackward: ({ dBcx, dWeight, dOut, bcx, weight, previous, rows, width, taps }) => {
      const memories = [dBcx, dOut, bcx, weight, previous];
      // Without room for it, the gradient of weights that are not trained is left out.
      if (dWeight.length === 0) queue.run(convolveBackward, [rows, width, taps], memories, perNumber(width));
      else queue.run(convolveBackwardAll, [rows, width, taps], [...memories, dWeight], perNumber(width));
    },
    convolutionCached: ({ out, products, bcx, weight, slots, positions, rows, capacity, width, taps }) => {
      const count = perNumber(rows * width);
      queue.run(storeProducts, [rows, width, capacity], [products, bcx, slots, positions], count);
      const memories = [out, products, bcx, weight, slots, positions];
      queue.run(convolveCached, [rows, width, capacity, taps], memories, count);
    },
    convolutionCopy: ({ products, from, to, length, capacity, width }) =>
      queue.run(
        copyWithin,
        [length * width, to * capacity * width, from * capacity * width],
        [products],
        perNumber(length * width),
      ),
    swiglu: ({ out, gateUp, rows, feedForward }) =>
      queue.run(gate, [rows, feedForward], [out, gateUp], perNumber(rows * feedForward)),
    swigluBackward: ({ dGateUp, dOut, gateUp, rows, feedForward }) =>
      queue.run(gateBackward, [rows, feedForward], [dGateUp, dOut, gateUp], perNumber(rows * feedForward)),
    geglu: ({ out, gateUp, rows, feedForward }) =>
      queue.run(geluGate, [rows, feedForward], [out, gateUp], perNumber(rows * feedForward)),
    gegluBackward: ({ dGateUp, dOut, gateUp, rows, feedForward }) =>
      queue.run(geluGateBackward, [rows, feedForward], [dGateUp, dOut, gateUp], perNumber(rows * feedForward)),
    embed: ({ out, table, tokens, rows, width }) =>
      inParts(binding, entriesOf(table, width), (first, count) => {
        const part = table.subarray(first * width, (first + count) * width);
        const shader = table.kind === 'bfloat16' ? lookUpBfloat16 : lookUp;
        queue.run(shader, [rows, width, first, count], [out, part, tokens], perNumber(rows * width));
      }),
    embedBackward: ({ dTable, dOut, tokens, rows, width }) =>
      inParts(binding, entriesOf(dTable, width), (first, count) => {
        const part = dTable.subarray(first * width, (first + count) * width);
        queue.run(addToTable, [rows, width, first, count], [part, dOut, tokens], perNumber(width));
      }),
  };
}

const entriesOf = ({ length, bytesPerNumber }: DeviceMemory, width: number) => ({
  rows: Math.floor(length / width),
  width,
  bytesPerNumber,
});

/** A pair turned by an angle, in every shader by the same operations. */
export const TURN = `fn turn(pair: vec2f, cosine: f32, sine: f32) -> vec2f {
  return vec2f(fma(pair.x, cosine, -(pair.y * sine)), fma(pair.y, cosine, pair.x * sine));
}`;
const rotate = numberShader({
  name: 'rope',
  numbers: ['rows', 'stride', 'heads', 'half', 'inverse'],
  memories: ['x', 'table', 'positions: i32'],
  declare: TURN,
  count: 'p.rows * p.heads * p.half',
  body: `let row = e / (p.heads * p.half); let i = e % p.half;
  let at = row * p.stride + e / p.half % p.heads * (2u * p.half) + i;
  let angle = u32(positions[row]) * 2u * p.half + i;
  let cosine = table[angle]; let sine = select(table[angle + p.half], -table[angle + p.half], p.inverse == 1u);
  let pair = turn(vec2f(x[at], x[at + p.half]), cosine, sine); x[at] = pair.x; x[at + p.half] = pair.y;`,
});

/** Goes over the rows of a window: row `q` of the token itself, with the last tap, and those before it. */
const eachTap = (body: string) => `var q = row; var tap = p.taps;
    loop {
      if (tap == 0u) { break; }
      tap--; let at = q * 3u * p.width + i; let u = x[at] * x[at + 2u * p.width];
      ${body}
      let before = u32(previous[q]); if (before == q) { break; }
      q = before;
    }`;
const convolve = numberShader({
  name: 'convolution',
  numbers: ['rows', 'width', 'taps'],
  memories: ['out', 'x', 'weight', 'previous: i32'],
  count: 'p.rows * p.width',
  body: `let row = e / p.width; let i = e % p.width; var sum = 0.0;
    ${eachTap('sum = fma(weight[tap * p.width + i], u, sum);')}
    out[e] = x[(row * 3u + 1u) * p.width + i] * sum;`,
});
/** A thread has a column and goes over the rows in order. The gradient of B · x is held in that of x until the end. */
const backwardOfConvolution = (name: string, memories: readonly string[], addToWeight: string) =>
  numberShader({
    name,
    numbers: ['rows', 'width', 'taps'],
    memories: ['dx', 'dOut', 'x', 'weight', 'previous: i32', ...memories],
    count: 'p.width',
    body: `let i = e; let third = 2u * p.width;
  for (var row = 0u; row < p.rows; row++) { dx[row * 3u * p.width + i + third] = 0.0; }
  for (var row = 0u; row < p.rows; row++) {
    let gate = (row * 3u + 1u) * p.width + i; let g = dOut[row * p.width + i] * x[gate]; var sum = 0.0;
    ${eachTap(`let w = tap * p.width + i; sum = fma(weight[w], u, sum);
      dx[at + third] = fma(g, weight[w], dx[at + third]); ${addToWeight}`)}
    dx[gate] = dOut[row * p.width + i] * sum;
  }
  for (var row = 0u; row < p.rows; row++) {
    let at = row * 3u * p.width + i; let change = dx[at + third];
    dx[at] = change * x[at + third]; dx[at + third] = change * x[at];
  }`,
  });
const convolveBackward = backwardOfConvolution('convolution backward', [], '');
const convolveBackwardAll = backwardOfConvolution(
  'convolution backward with weights',
  ['dWeight'],
  'dWeight[w] = fma(g, u, dWeight[w]);',
);
const PLACE =
  'let row = e / p.width; let i = e % p.width; let slot = u32(slots[row]); let position = u32(positions[row]);';
const storeProducts = numberShader({
  name: 'store products',
  numbers: ['rows', 'width', 'capacity'],
  memories: ['products', 'x', 'slots: i32', 'positions: i32'],
  count: 'p.rows * p.width',
  body: `${PLACE} let at = row * 3u * p.width + i;
  products[(slot * p.capacity + position) * p.width + i] = x[at] * x[at + 2u * p.width];`,
});
const convolveCached = numberShader({
  name: 'convolution cached',
  numbers: ['rows', 'width', 'capacity', 'taps'],
  memories: ['out', 'products', 'x', 'weight', 'slots: i32', 'positions: i32'],
  count: 'p.rows * p.width',
  body: `${PLACE} var sum = 0.0;
  for (var j = 0u; j < min(p.taps, position + 1u); j++) {
    let u = products[(slot * p.capacity + position - j) * p.width + i];
    sum = fma(weight[(p.taps - 1u - j) * p.width + i], u, sum);
  }
  out[e] = x[(row * 3u + 1u) * p.width + i] * sum;`,
});

const GATE = 'let at = e / p.width * 2u * p.width + e % p.width; let gate = x[at]; let up = x[at + p.width];';
const gate = numberShader({
  name: 'swiglu',
  numbers: ['rows', 'width'],
  memories: ['out', 'x'],
  count: 'p.rows * p.width',
  body: `${GATE} out[e] = gate / (1.0 + exp(-gate)) * up;`,
});
const gateBackward = numberShader({
  name: 'swiglu backward',
  numbers: ['rows', 'width'],
  memories: ['dx', 'dOut', 'x'],
  count: 'p.rows * p.width',
  body: `${GATE} let change = dOut[e]; let s = 1.0 / (1.0 + exp(-gate));
  dx[at] = change * up * s * (1.0 + gate * (1.0 - s)); dx[at + p.width] = change * gate * s;`,
});

/** GELU's approximation by tanh, as gate · sigmoid(z). The exponent is limited, since exp may not give an infinity. */
const GELU = `fn gelu_gate(gate: f32) -> f32 {
  return 1.0 / (1.0 + exp(min(80.0, -1.5957691216057308 * gate * (1.0 + 0.044715 * gate * gate))));
}`;
const geluGate = numberShader({
  name: 'geglu',
  numbers: ['rows', 'width'],
  memories: ['out', 'x'],
  declare: GELU,
  count: 'p.rows * p.width',
  body: `${GATE} out[e] = gate * gelu_gate(gate) * up;`,
});
const geluGateBackward = numberShader({
  name: 'geglu backward',
  numbers: ['rows', 'width'],
  memories: ['dx', 'dOut', 'x'],
  declare: GELU,
  count: 'p.rows * p.width',
  body: `${GATE} let change = dOut[e]; let s = gelu_gate(gate);
  let slope = 1.5957691216057308 * (1.0 + 0.134145 * gate * gate);
  dx[at] = change * up * s * (1.0 + gate * (1.0 - s) * slope); dx[at + p.width] = change * gate * s;`,
});

/** Each part of a table fills in the rows whose tokens it has. */
const SKIP_OTHERS = 'if (token < p.first || token >= p.first + p.entries)';
const SIZES = ['rows', 'width', 'first', 'entries'];
const look = (name: string, memory: string, read: string) =>
  numberShader({
    name,
    numbers: SIZES,
    memories: ['out', memory, 'tokens: i32'],
    count: 'p.rows * p.width',
    body: `let token = u32(tokens[e / p.width]); ${SKIP_OTHERS} { return; }
  let i = (token - p.first) * p.width + e % p.width; out[e] = ${read};`,
  });
const lookUp = look('embed', 'table', 'table[i]');
const lookUpBfloat16 = look('embed bfloat16', 'table: bf16', 'table_at(i)');
/** A thread has a column and goes over the rows in order. */
const addToTable = numberShader({
  name: 'embed backward',
  numbers: SIZES,
  memories: ['dTable', 'dOut', 'tokens: i32'],
  count: 'p.width',
  body: `for (var row = 0u; row < p.rows; row++) {
    let token = u32(tokens[row]); ${SKIP_OTHERS} { continue; }
    let at = (token - p.first) * p.width + e; dTable[at] = dTable[at] + dOut[row * p.width + e];
  }`,
});
