/** Copies, constants and blocks of matrices, in memory that the host cannot index. */
import type { CommandQueue } from '../command-queue.js';
import type { DeviceKernels } from '../device-kernels.js';
import { alongside, inParts } from '../parts.js';
import { numberShader, perNumber } from '../shader.js';

type MemoryKernels = Pick<DeviceKernels, 'copy' | 'fill' | 'repeat' | 'copyBlock'>;

/** @param binding Bytes of a binding at most; longer memories go in parts. */
export function memoryKernels(queue: CommandQueue, binding: number): MemoryKernels {
  return {
    copy: ({ to, from }) =>
      alongside(binding, from.length, [to, from], (parts, count) =>
        queue.run(copyNumbers, [count], parts, perNumber(count)),
      ),
    fill: ({ x, value }) =>
      alongside(binding, x.length, [x], (parts, count) =>
        queue.run(fillNumbers, [count, value], parts, perNumber(count)),
      ),
    repeat: ({ out, row, rows }) =>
      inParts(binding, { rows, width: row.length, bytesPerNumber: 4 }, (first, count) => {
        const size = count * row.length;
        const part = out.subarray(first * row.length, first * row.length + size);
        queue.run(repeatRow, [size, row.length], [part, row], perNumber(size));
      }),
    copyBlock: ({ to, toStride, from: source, fromStride: sourceStride, rows, columns, scale, accumulate }) => {
      if (columns === 0) return;
      const width = Math.max(toStride, sourceStride);
      inParts(binding, { rows, width, bytesPerNumber: 4 }, (first, count) => {
        const size = count * columns;
        const rowsOf = (memory: typeof to, stride: number) =>
          memory.subarray(first * stride, (first + count - 1) * stride + columns);
        const numbers = [size, columns, toStride, sourceStride, Number(accumulate), scale];
        queue.run(block, numbers, [rowsOf(to, toStride), rowsOf(source, sourceStride)], perNumber(size));
      });
    },
  };
}

// Words, since a device may change the bits of floats that are not numbers or very small.
const copyNumbers = numberShader({
  name: 'copy',
  numbers: ['count'],
  memories: ['to: u32', 'source: u32'],
  count: 'p.count',
  body: 'to[e] = source[e];',
});
export const copyWithin = numberShader({
  name: 'copy within',
  numbers: ['count', 'to', 'source'],
  memories: ['x'],
  count: 'p.count',
  body: 'x[p.to + e] = x[p.source + e];',
});
const fillNumbers = numberShader({
  name: 'fill',
  numbers: ['count', 'value!'],
  memories: ['x'],
  count: 'p.count',
  body: 'x[e] = p.value;',
});
const repeatRow = numberShader({
  name: 'repeat',
  numbers: ['count', 'width'],
  memories: ['out: u32', 'row: u32'],
  count: 'p.count',
  body: 'out[e] = row[e % p.width];',
});
const block = numberShader({
  name: 'copy block',
  numbers: ['count', 'columns', 'to_stride', 'source_stride', 'accumulate', 'scale!'],
  memories: ['to', 'source'],
  count: 'p.count',
  body: `let row = e / p.columns; let i = e % p.columns; let at = row * p.to_stride + i;
  let v = p.scale * source[row * p.source_stride + i];
  if (p.accumulate == 1u) { to[at] = to[at] + v; } else { to[at] = v; }`,
});
