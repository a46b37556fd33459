import { describe, expect, it } from 'vitest';
import {
  blank,
  body,
  close,
  differences,
  dot,
  floats,
  get,
  integers,
  noise,
  pickRows,
  ROWS,
  randomIntegers,
  type Subject,
  sameBits,
  tailIsIntact,
  WIDTHS,
} from './support.js';

const EPSILON = 1e-5;

/** y = x / sqrt(mean(x²) + epsilon) · gain, for one row. */
function normalised(x: ArrayLike<number>, gain: ArrayLike<number>): Float64Array {
  const scale = 1 / Math.sqrt(dot(x, x) / x.length + EPSILON);
  return Float64Array.from(x, (value, i) => value * scale * get(gain, i));
}

const rowOf = (x: Float32Array, row: number, width: number) => x.subarray(row * width, (row + 1) * width);

export function normContract(subject: Subject): void {
  describe('rmsNorm', () => {
    const run = (x: Float32Array, gain: Float32Array, rows: number, width: number) => {
      const out = blank(subject(), rows * width);
      const inverse = blank(subject(), rows);
      subject().rmsNorm(out, inverse, floats(subject(), x), floats(subject(), gain), rows, width, EPSILON);
      return { out, inverse };
    };

    it('divides by the root mean square, whatever stands beside a row', () => {
      for (const width of WIDTHS) {
        for (const rows of ROWS) {
          const x = noise(rows * width, 'x', 3);
          const gain = noise(width, 'gain');
          const { out, inverse } = run(x, gain, rows, width);
          for (let row = 0; row < rows; row++) {
            const values = rowOf(x, row, width);
            close(rowOf(out, row, width), normalised(values, gain), 2e-6, `rmsNorm ${rows} x ${width}`);
            const scale = 1 / Math.sqrt(dot(values, values) / width + EPSILON);
            close(inverse.subarray(row, row + 1), [scale], 1e-6, 'inverse');
          }
          expect(tailIsIntact(out) && tailIsIntact(inverse)).toBe(true);
          const last = run(pickRows(x, [rows - 1], width), gain, 1, width);
          sameBits(body(last.out), rowOf(out, rows - 1, width), 'last row alone');
          sameBits(body(last.inverse), inverse.subarray(rows - 1, rows), 'its inverse');
        }
      }
    });

    it('leaves a row of zeros at zero', () => {
      const { out } = run(new Float32Array(64), noise(64, 'gain'), 1, 64);
      close(out, new Float32Array(64), 0, 'zeros');
    });

    it('adds the gradients of the input and of the gain', () => {
      for (const width of [1, 5, 31, 97]) {
        for (const rows of [1, 3, 17]) {
          const x = noise(rows * width, 'x', 2);
          const gain = noise(width, 'gain');
          const dOut = noise(rows * width, 'dOut');
          const { inverse } = run(x, gain, rows, width);
          const beforeX = noise(rows * width, 'before x');
          const beforeGain = noise(width, 'before gain');
          const dx = floats(subject(), beforeX);
          const dGain = floats(subject(), beforeGain);
          subject().rmsNormBackward(
            dx,
            dGain,
            floats(subject(), dOut),
            floats(subject(), x),
            floats(subject(), gain),
            inverse,
            rows,
            width,
          );
          const expectedGain = Float64Array.from(beforeGain);
          for (let row = 0; row < rows; row++) {
            const values = rowOf(x, row, width);
            const change = rowOf(dOut, row, width);
            const byInput = differences((moved) => dot(change, normalised(moved, gain)), values);
            const expected = byInput.map((value, i) => value + get(beforeX, row * width + i));
            close(dx.slice(row * width, (row + 1) * width), expected, 1e-5, `dx ${rows} x ${width}`);
            normalised(values, new Float32Array(width).fill(1)).forEach((value, i) => {
              expectedGain[i] = get(expectedGain, i) + value * get(change, i);
            });
          }
          close(dGain, expectedGain, 1e-5, `dGain ${rows} x ${width}`);
          expect(tailIsIntact(dx)).toBe(true);
        }
      }
    });
  });
}

export function headNormContract(subject: Subject): void {
  describe('headNorm', () => {
    const shapes = [
      { rows: 1, heads: 1, headDim: 2, before: 0, after: 0 },
      { rows: 3, heads: 2, headDim: 12, before: 5, after: 7 },
      { rows: 17, heads: 3, headDim: 16, before: 16, after: 0 },
      { rows: 66, heads: 2, headDim: 64, before: 0, after: 64 },
      { rows: 5, heads: 7, headDim: 97, before: 1, after: 1 },
    ];
    /** The matrix whose heads begin `before` floats into each row. */
    const within = (kernels: ReturnType<Subject>, x: Float32Array, before: number) => {
      const whole = floats(kernels, x);
      return { whole, heads: whole.subarray(before) };
    };

    it.each(shapes)('is rmsNorm of each head, bit for bit, and touches nothing else: %j', (shape) => {
      const { rows, heads, headDim, before, after } = shape;
      const stride = before + heads * headDim + after;
      const x = noise(rows * stride, 'x', 3);
      const gain = floats(subject(), noise(headDim, 'gain'));
      const matrix = within(subject(), x, before);
      const inverse = blank(subject(), rows * heads);
      subject().headNorm(matrix.heads, inverse, gain, rows, stride, heads, headDim, EPSILON);
      const expected = x.slice();
      for (let row = 0; row < rows; row++) {
        for (let head = 0; head < heads; head++) {
          const at = row * stride + before + head * headDim;
          const [out, scale] = [blank(subject(), headDim), blank(subject(), 1)];
          const own = floats(subject(), x.subarray(at, at + headDim));
          subject().rmsNorm(out, scale, own, gain, 1, headDim, EPSILON);
          expected.set(body(out), at);
          sameBits(inverse.slice(row * heads + head, row * heads + head + 1), body(scale), 'inverse');
        }
      }
      sameBits(body(matrix.whole), expected, 'headNorm');
      expect(tailIsIntact(matrix.whole) && tailIsIntact(inverse)).toBe(true);
    });

    it.each(shapes)('turns the gradient of its result into that of its input: %j', (shape) => {
      const { rows, heads, headDim, before, after } = shape;
      const stride = before + heads * headDim + after;
      const x = noise(rows * stride, 'x', 2);
      const change = noise(rows * stride, 'd');
      const gain = noise(headDim, 'gain');
      const inverse = blank(subject(), rows * heads);
      const ours = floats(subject(), gain);
      subject().headNorm(within(subject(), x, before).heads, inverse, ours, rows, stride, heads, headDim, EPSILON);
      const d = within(subject(), change, before);
      const beforeGain = noise(headDim, 'before gain');
      const dGain = floats(subject(), beforeGain);
      const saved = within(subject(), x, before).heads;
      subject().headNormBackward(d.heads, dGain, saved, ours, inverse, rows, stride, heads, headDim);
      const expected = Float64Array.from(change);
      const expectedGain = Float64Array.from(beforeGain);
      for (let row = 0; row < rows; row++) {
        for (let head = 0; head < heads; head++) {
          const at = row * stride + before + head * headDim;
          const [values, upstream] = [x.subarray(at, at + headDim), change.subarray(at, at + headDim)];
          expected.set(
            differences((moved) => dot(upstream, normalised(moved, gain)), values),
            at,
          );
          normalised(values, new Float32Array(headDim).fill(1)).forEach((value, i) => {
            expectedGain[i] = get(expectedGain, i) + value * get(upstream, i);
          });
        }
      }
      close(body(d.whole), expected, 1e-5, 'dx');
      close(body(dGain), expectedGain, 1e-5, 'dGain');
      expect(tailIsIntact(d.whole) && tailIsIntact(dGain)).toBe(true);
    });
  });
}

export function ropeContract(subject: Subject): void {
  describe('rope', () => {
    for (const headDim of [2, 8, 16, 64, 80]) {
      it(`turns pairs of a head of ${headDim}, back again, and nothing else`, () => {
        const [rows, heads, context, half] = [17, 3, 40, headDim / 2];
        const stride = (heads + 2) * headDim;
        const angle = (position: number, i: number) => position * 10000 ** (-i / half);
        const table = new Float32Array(context * headDim);
        for (let position = 0; position < context; position++) {
          for (let i = 0; i < half; i++) {
            table[position * headDim + i] = Math.cos(angle(position, i));
            table[position * headDim + half + i] = Math.sin(angle(position, i));
          }
        }
        const positions = randomIntegers(rows, context, 'positions');
        const x = noise(rows * stride, 'x');
        const expected = Float64Array.from(x);
        for (let row = 0; row < rows; row++) {
          for (let head = 0; head < heads; head++) {
            for (let i = 0; i < half; i++) {
              const first = row * stride + head * headDim + i;
              const turn = angle(get(positions, row), i);
              const [a, b] = [get(x, first), get(x, first + half)];
              expected[first] = a * Math.cos(turn) - b * Math.sin(turn);
              expected[first + half] = b * Math.cos(turn) + a * Math.sin(turn);
            }
          }
        }
        const turned = floats(subject(), x);
        const where = integers(subject(), positions);
        const cosSin = floats(subject(), table);
        subject().rope(turned, cosSin, where, rows, stride, heads, headDim, false);
        close(turned, expected, 1e-6, 'rope');
        for (let row = 0; row < rows; row++) {
          const rest = [row * stride + heads * headDim, (row + 1) * stride] as const;
          sameBits(turned.subarray(...rest), x.subarray(...rest), 'keys and values beyond the heads');
        }

        const row = rows - 1;
        const alone = floats(subject(), pickRows(x, [row], stride));
        subject().rope(alone, cosSin, where.subarray(row), 1, stride, heads, headDim, false);
        sameBits(body(alone), pickRows(turned, [row], stride), 'last row alone');

        subject().rope(turned, cosSin, where, rows, stride, heads, headDim, true);
        close(turned, x, 1e-6, 'there and back');
      });
    }
  });
}

const silu = (x: number) => x / (1 + Math.exp(-x));

export function gateContract(subject: Subject): void {
  describe('swiglu', () => {
    const inputs = (rows: number, width: number) => {
      const gateUp = noise(rows * 2 * width, 'gate and up', 4);
      gateUp.set([-100, 100, -20, 20, 0].slice(0, width));
      return gateUp;
    };
    const gateAt = (width: number, i: number) => Math.floor(i / width) * 2 * width + (i % width);

    it('is silu(gate) times up, also far out', () => {
      for (const width of WIDTHS) {
        for (const rows of ROWS) {
          const gateUp = inputs(rows, width);
          const out = blank(subject(), rows * width);
          subject().swiglu(out, floats(subject(), gateUp), rows, width);
          const expected = Float64Array.from(body(out), (_, i) => {
            const gate = gateAt(width, i);
            return silu(get(gateUp, gate)) * get(gateUp, gate + width);
          });
          close(out, expected, 2e-6, `swiglu ${rows} x ${width}`);
          const alone = blank(subject(), width);
          subject().swiglu(alone, floats(subject(), pickRows(gateUp, [rows - 1], 2 * width)), 1, width);
          sameBits(body(alone), rowOf(out, rows - 1, width), 'last row alone');
        }
      }
    });

    it('gives the gradients of gate and up', () => {
      for (const width of WIDTHS) {
        for (const rows of ROWS) {
          const gateUp = inputs(rows, width);
          const dOut = noise(rows * width, 'dOut');
          const dGateUp = blank(subject(), gateUp.length);
          subject().swigluBackward(dGateUp, floats(subject(), dOut), floats(subject(), gateUp), rows, width);
          const expected = new Float64Array(gateUp.length);
          dOut.forEach((change, i) => {
            const gate = gateAt(width, i);
            const [g, u] = [get(gateUp, gate), get(gateUp, gate + width)];
            expected[gate] = get(
              differences((x) => change * silu(get(x, 0)) * u, [g]),
              0,
            );
            expected[gate + width] = change * silu(g);
          });
          close(dGateUp, expected, 1e-5, `swiglu backward ${rows} x ${width}`);
        }
      }
    });
  });
}

export function embeddingContract(subject: Subject): void {
  describe('embed', () => {
    const vocabSize = 11;
    it('copies rows of the table and adds gradients to them in order', () => {
      for (const width of WIDTHS) {
        for (const rows of ROWS) {
          const table = noise(vocabSize * width, 'table');
          const tokens = randomIntegers(rows, vocabSize, 'tokens');
          const out = blank(subject(), rows * width);
          subject().embed(out, floats(subject(), table), integers(subject(), tokens), rows, width);
          sameBits(body(out), pickRows(table, Array.from(tokens), width), 'embedding');
          expect(tailIsIntact(out)).toBe(true);

          const dOut = noise(rows * width, 'dOut');
          const expected = noise(vocabSize * width, 'before');
          const dTable = floats(subject(), expected);
          dOut.forEach((change, i) => {
            const at = get(tokens, Math.floor(i / width)) * width + (i % width);
            expected[at] = get(expected, at) + change;
          });
          subject().embedBackward(dTable, floats(subject(), dOut), integers(subject(), tokens), rows, width);
          sameBits(body(dTable), expected, 'gradient of the table');
          expect(tailIsIntact(dTable)).toBe(true);
        }
      }
    });
  });
}
