/** Kernels that compute number by number: positions, gates, embeddings. */
import type { CommandQueue } from '../command-queue.js';
import type { DeviceKernels } from '../device-kernels.js';
import type { DeviceMemory } from '../device-memory.js';
import { inParts } from '../parts.js';
import { numberShader, perNumber } from '../shader.js';

type StreamKernels = Pick<
  DeviceKernels,
  'rope' | 'swiglu' | 'swigluBackward' | 'geglu' | 'gegluBackward' | 'embed' | 'embedBackward'
>;

/** @param binding The most bytes of a binding. A larger table is processed in parts. */
export function streamKernels(queue: CommandQueue, binding: number): StreamKernels {
  return {
    rope: ({ qkv, table, positions, rows, heads: { heads, kvHeads, headDim }, inverse }) => {
      const [turned, half] = [heads + kvHeads, headDim / 2];
      const numbers = [rows, (heads + 2 * kvHeads) * headDim, turned, half, Number(inverse)];
      queue.run(rotate, numbers, [qkv, table, positions], perNumber(rows * turned * half));
    },
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
