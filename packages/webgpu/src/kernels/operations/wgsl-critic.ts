import type { CommandQueue } from '../command-queue.js';
import type { DeviceKernels } from '../device-kernels.js';
import type { ScratchMemory } from '../scratch-memory.js';
import { grid, numberShader, perNumber, rowShader, scratch, total } from '../shader.js';

export function criticKernels(
  queue: CommandQueue,
  scratchMemory: ScratchMemory,
): Pick<DeviceKernels, 'valueHead' | 'valueHeadBackward'> {
  return {
    valueHead: ({ values, hidden, head, rows, width }) =>
      queue.run(forward, [rows, width], [values, hidden, head], grid(rows)),
    valueHeadBackward: ({ dHidden, dHead, slopes, hidden, head, rows, width }) => {
      if (rows === 0) return;
      const given = scratchMemory.take('slopes', rows);
      queue.write(given, Float32Array.from(slopes.subarray(0, rows)));
      queue.run(backward, [rows * width, width], [dHidden, given, head], perNumber(rows * width));
      queue.run(headGradient, [rows, width], [dHead, given, hidden], perNumber(width + 1));
    },
  };
}

const THREADS = 64;
const forward = rowShader({
  name: 'value head',
  numbers: ['rows', 'width'],
  memories: ['values', 'hidden', 'head'],
  declare: scratch(THREADS) + total(THREADS),
  threads: `${THREADS}`,
  rows: 'p.rows',
  body: `var s = 0.0;
  for (var i = t; i < p.width; i += ${THREADS}u) { s = fma(hidden[r * p.width + i], head[i], s); }
  s = total(t, s); if (t == 0u) { values[r] = s + head[p.width]; }`,
});
const backward = numberShader({
  name: 'value head backward',
  numbers: ['count', 'width'],
  memories: ['dHidden', 'slopes', 'head'],
  count: 'p.count',
  body: 'dHidden[e] = slopes[e / p.width] * head[e % p.width];',
});
/** Each thread sums one column over the rows in order. The last column is the bias. */
const headGradient = numberShader({
  name: 'gradient of a value head',
  numbers: ['rows', 'width'],
  memories: ['dHead', 'slopes', 'hidden'],
  count: 'p.width + 1u',
  body: `var s = dHead[e];
  for (var r = 0u; r < p.rows; r++) {
    if (e < p.width) { s = fma(slopes[r], hidden[r * p.width + e], s); } else { s += slopes[r]; }
  }
  dHead[e] = s;`,
});
