import type { CommandQueue } from '../command-queue.js';
import type { DeviceKernels } from '../device-kernels.js';
import type { DeviceBfloat16s, DeviceFloats } from '../device-memory.js';
import { inParts } from '../parts.js';
import { numberShader, perNumber, ROUNDING } from '../shader.js';

/** Matrices that products read, and whether they are in bfloat16. */
export type DeviceMatrix = DeviceFloats | DeviceBfloat16s;
export const isInBfloat16 = (memory: DeviceMatrix): memory is DeviceBfloat16s => memory.kind === 'bfloat16';

export const matrixOf = ({ bytesPerNumber }: DeviceMatrix, rows: number, width: number) => ({
  rows,
  width,
  bytesPerNumber,
});

/**
 * Writes a matrix as [outputs, inputs]. One that is stored otherwise gives every part of the packed form a few numbers
 * from each of its own parts.
 * @param binding Bytes of a binding at most
 */
export function packMatrix(
  queue: CommandQueue,
  binding: number,
  { packed, weight, inputs, outputs, transpose }: Parameters<DeviceKernels['pack']>[0],
): void {
  inParts(binding, matrixOf(packed, outputs, inputs), (first, count) => {
    const size = count * inputs;
    const to = packed.subarray(first * inputs, first * inputs + size);
    const write = (from: DeviceMatrix, numbers: readonly number[]) => {
      if (isInBfloat16(packed)) {
        const words = to.as('uint32');
        const shader = isInBfloat16(weight) ? packBfloat16 : packRounded;
        queue.run(shader, [size, inputs, ...numbers], [words, from], perNumber(words.length));
      } else queue.run(packFloats, [size, inputs, ...numbers], [to, from], perNumber(size));
    };
    if (transpose) write(weight.subarray(first * inputs, first * inputs + size), [0, inputs, 0, 1, inputs]);
    else
      inParts(binding, matrixOf(weight, inputs, outputs), (firstInput, ofInputs) => {
        const end = firstInput + ofInputs;
        write(weight.subarray(firstInput * outputs, end * outputs), [firstInput, end, first, outputs, 1]);
      });
  });
}

/** Number `i` of a part of the packed form comes from a part of the matrix that has some of its inputs. */
const NUMBERS = ['size', 'inputs', 'first_input', 'end_input', 'first_output', 'input_stride', 'output_stride'];
const PLACE = `
fn is_there(i: u32) -> bool { let k = i % p.inputs; return i < p.size && k >= p.first_input && k < p.end_input; }
fn place(i: u32) -> u32 {
  return (i % p.inputs - p.first_input) * p.input_stride + (i / p.inputs + p.first_output) * p.output_stride;
}`;

const packFloats = numberShader({
  name: 'pack floats',
  numbers: NUMBERS,
  memories: ['packed', 'matrix'],
  declare: PLACE,
  count: 'p.size',
  body: 'if (is_there(e)) { packed[e] = matrix[place(e)]; }',
});

/** Each thread writes a word of two numbers. The second number may be after the end of the matrix. */
const packWords = (name: string, memory: string, bits: (i: string) => string) =>
  numberShader({
    name,
    numbers: NUMBERS,
    memories: ['packed: u32', memory],
    declare: `${ROUNDING}\n${PLACE}`,
    count: '(p.size + 1u) / 2u',
    body: `var low = packed[e] & 0xffffu; var high = packed[e] & 0xffff0000u;
  if (is_there(2u * e)) { low = ${bits('2u * e')} >> 16u; }
  if (is_there(2u * e + 1u)) { high = ${bits('2u * e + 1u')}; }
  packed[e] = low | high;`,
  });
const packBfloat16 = packWords('pack bfloat16', 'matrix: bf16', (i) => `bitcast<u32>(matrix_at(place(${i})))`);
const packRounded = packWords('pack rounded', 'matrix', (i) => `rounded_bits(bitcast<u32>(matrix[place(${i})]))`);
