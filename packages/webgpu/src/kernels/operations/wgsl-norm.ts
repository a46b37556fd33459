import type { CommandQueue } from '../command-queue.js';
import type { DeviceKernels } from '../device-kernels.js';
import type { DeviceFloats } from '../device-memory.js';
import { grid, numberShader, perNumber, rowShader, scratch, total } from '../shader.js';

type NormKernels = Pick<DeviceKernels, 'rmsNorm' | 'rmsNormBackward' | 'headNorm' | 'headNormBackward'>;

export function normKernels(queue: CommandQueue): NormKernels {
  /** Lines of `width` numbers, `heads` of them in each row of `stride`. A gradient of no numbers is not wanted. */
  const addToGain = (
    [dGain, dOut, x, inverse]: readonly [DeviceFloats, DeviceFloats, DeviceFloats, DeviceFloats],
    sizes: readonly [lines: number, width: number, heads: number, stride: number],
  ) => {
    if (dGain.length > 0) queue.run(gainGradient, sizes, [dGain, dOut, x, inverse], perNumber(sizes[1]));
  };
  return {
    rmsNorm: ({ out, inverse, x, gain, rows, width, epsilon }) =>
      queue.run(forward, [rows, width, 1, width, epsilon], [out, inverse, x, gain], grid(rows)),
    rmsNormBackward: ({ dx, dGain, dOut, x, gain, inverse, rows, width }) => {
      const sizes = [rows, width, 1, width] as const;
      addToGain([dGain, dOut, x, inverse], sizes);
      queue.run(backward, sizes, [dx, dOut, x, gain, inverse], grid(rows));
    },
    headNorm: ({
      qkv,
      queryInverse,
      keyInverse,
      queryGain,
      keyGain,
      rows,
      heads: { heads, kvHeads, headDim },
      epsilon,
    }) => {
      const stride = (heads + 2 * kvHeads) * headDim;
      const [queries, keys] = [qkv, qkv.subarray(heads * headDim)];
      for (const [x, inverse, gain, count] of [
        [queries, queryInverse, queryGain, heads],
        [keys, keyInverse, keyGain, kvHeads],
      ] as const) {
        const lines = rows * count;
        queue.run(forwardInPlace, [lines, headDim, count, stride, epsilon], [x, inverse, gain], grid(lines));
      }
    },
    headNormBackward: ({
      dQkv,
      dQueryGain,
      dKeyGain,
      qkv,
      queryGain,
      keyGain,
      queryInverse,
      keyInverse,
      rows,
      heads: { heads, kvHeads, headDim },
    }) => {
      const stride = (heads + 2 * kvHeads) * headDim;
      const keysAt = heads * headDim;
      for (const [d, dGain, x, gain, inverse, count] of [
        [dQkv, dQueryGain, qkv, queryGain, queryInverse, heads],
        [dQkv.subarray(keysAt), dKeyGain, qkv.subarray(keysAt), keyGain, keyInverse, kvHeads],
      ] as const) {
        const sizes = [rows * count, headDim, count, stride] as const;
        addToGain([dGain, d, x, inverse], sizes);
        queue.run(backwardInPlace, sizes, [d, x, gain, inverse], grid(rows * count));
      }
    },
  };
}

const THREADS = 64;
const SIZES = ['lines', 'width', 'heads', 'stride'];
const AT = 'let at = r / p.heads * p.stride + r % p.heads * p.width;';
const lineShader = (name: string, numbers: readonly string[], memories: readonly string[], body: string) =>
  rowShader({
    name,
    numbers,
    memories,
    declare: scratch(THREADS) + total(THREADS),
    threads: `${THREADS}`,
    rows: 'p.lines',
    body: `${AT}\n${body}`,
  });
const overWidth = (body: string) => `for (var i = t; i < p.width; i += ${THREADS}u) { ${body} }`;

const normalise = (target: string) => `var squares = 0.0;
  ${overWidth('let v = x[at + i]; squares = fma(v, v, squares);')}
  let scale = 1.0 / sqrt(total(t, squares) / f32(p.width) + p.epsilon);
  if (t == 0u) { inverse[r] = scale; }
  ${overWidth(`${target}[at + i] = x[at + i] * scale * gain[i];`)}`;
const forward = lineShader('norm', [...SIZES, 'epsilon!'], ['out', 'inverse', 'x', 'gain'], normalise('out'));
const forwardInPlace = lineShader('norm in place', [...SIZES, 'epsilon!'], ['x', 'inverse', 'gain'], normalise('x'));

const slope = (dOut: string, write: string) => `var s = 0.0;
  ${overWidth(`s += ${dOut}[at + i] * x[at + i] * gain[i];`)}
  let scale = inverse[r]; let along = total(t, s) / f32(p.width) * scale * scale * scale;
  ${overWidth(`let v = ${dOut}[at + i] * gain[i] * scale - x[at + i] * along; ${write}`)}`;
const backward = lineShader(
  'norm backward',
  SIZES,
  ['dx', 'dOut', 'x', 'gain', 'inverse'],
  slope('dOut', 'dx[at + i] = dx[at + i] + v;'),
);
const backwardInPlace = lineShader(
  'norm backward in place',
  SIZES,
  ['d', 'x', 'gain', 'inverse'],
  slope('d', 'd[at + i] = v;'),
);

/** A thread has a column and goes over the rows in order. */
const gainGradient = numberShader({
  name: 'gradient of a gain',
  numbers: SIZES,
  memories: ['dGain', 'dOut', 'x', 'inverse'],
  count: 'p.width',
  body: `var s = 0.0;
  for (var r = 0u; r < p.lines; r++) { ${AT} s += dOut[at + e] * x[at + e] * inverse[r]; }
  dGain[e] = dGain[e] + s;`,
});
