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
  const y = new Float64Array(x.length); // a loop, because gradients by differences call this for each element twice
  for (let i = 0; i < x.length; i++) y[i] = get(x, i) * scale * get(gain, i);
  return y;
}

const rowOf = (x: Float32Array, row: number, width: number) => x.subarray(row * width, (row + 1) * width);

export function normContract(subject: Subject): void {
  describe('rmsNorm', () => {
    const run = (x: Float32Array, gain: Float32Array, rows: number, width: number) => {
      const out = blank(subject(), rows * width);
      const inverse = blank(subject(), rows);
      subject().rmsNorm({
        out,
        inverse,
        x: floats(subject(), x),
        gain: floats(subject(), gain),
        rows,
        width,
        epsilon: EPSILON,
      });
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
          subject().rmsNormBackward({
            dx,
            dGain,
            dOut: floats(subject(), dOut),
            x: floats(subject(), x),
            gain: floats(subject(), gain),
            inverse,
            rows,
            width,
          });
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
      { rows: 1, heads: 1, kvHeads: 1, headDim: 2 },
      { rows: 3, heads: 2, kvHeads: 1, headDim: 12 },
      { rows: 17, heads: 3, kvHeads: 3, headDim: 16 },
      { rows: 66, heads: 4, kvHeads: 2, headDim: 64 },
      { rows: 5, heads: 7, kvHeads: 1, headDim: 97 },
    ];
    type Shape = (typeof shapes)[number];

    /** Every query and key: its first element, and the element of the inverse that belongs to it. */
    const places = ({ rows, heads, kvHeads, headDim }: Shape) =>
      Array.from({ length: rows * (heads + kvHeads) }, (_, i) => {
        const [row, head] = [Math.floor(i / (heads + kvHeads)), i % (heads + kvHeads)];
        const at = (row * (heads + 2 * kvHeads) + head) * headDim;
        return head < heads
          ? { at, kind: 'query' as const, index: row * heads + head }
          : { at, kind: 'key' as const, index: row * kvHeads + head - heads };
      });

    /** Rows of queries, keys and values, two gains, and the results of `headNorm`. */
    const normed = (shape: Shape, spread: number) => {
      const { rows, heads, kvHeads, headDim } = shape;
      const x = noise(rows * (heads + 2 * kvHeads) * headDim, 'x', spread);
      const gains = { query: noise(headDim, 'query gain'), key: noise(headDim, 'key gain') };
      const given = { query: floats(subject(), gains.query), key: floats(subject(), gains.key) };
      const inverse = { query: blank(subject(), rows * heads), key: blank(subject(), rows * kvHeads) };
      const qkv = floats(subject(), x);
      subject().headNorm({
        qkv,
        queryInverse: inverse.query,
        keyInverse: inverse.key,
        queryGain: given.query,
        keyGain: given.key,
        rows,
        heads: shape,
        epsilon: EPSILON,
      });
      return { x, gains, given, inverse, qkv };
    };

    it.each(shapes)('is rmsNorm of each query and key, bit for bit, and touches nothing else: %j', (shape) => {
      const { headDim } = shape;
      const { x, given, inverse, qkv } = normed(shape, 3);
      const expected = x.slice();
      for (const { at, kind, index } of places(shape)) {
        const [out, scale] = [blank(subject(), headDim), blank(subject(), 1)];
        const head = floats(subject(), x.subarray(at, at + headDim));
        subject().rmsNorm({
          out,
          inverse: scale,
          x: head,
          gain: given[kind],
          rows: 1,
          width: headDim,
          epsilon: EPSILON,
        });
        expected.set(body(out), at);
        sameBits(inverse[kind].slice(index, index + 1), body(scale), 'inverse');
      }
      sameBits(body(qkv), expected, 'headNorm');
      expect(tailIsIntact(qkv) && tailIsIntact(inverse.query) && tailIsIntact(inverse.key)).toBe(true);
    });

    it.each(shapes)('turns the gradient of its result into the gradient of its input: %j', (shape) => {
      const { rows, headDim } = shape;
      const { x, gains, given, inverse } = normed(shape, 2);
      const change = noise(x.length, 'd');
      const d = floats(subject(), change);
      const gainsBefore = { query: noise(headDim, 'before query'), key: noise(headDim, 'before key') };
      const dGain = { query: floats(subject(), gainsBefore.query), key: floats(subject(), gainsBefore.key) };
      subject().headNormBackward({
        dQkv: d,
        dQueryGain: dGain.query,
        dKeyGain: dGain.key,
        qkv: floats(subject(), x),
        queryGain: given.query,
        keyGain: given.key,
        queryInverse: inverse.query,
        keyInverse: inverse.key,
        rows,
        heads: shape,
      });
      const expected = Float64Array.from(change);
      const expectedGain = { query: Float64Array.from(gainsBefore.query), key: Float64Array.from(gainsBefore.key) };
      for (const { at, kind } of places(shape)) {
        const [values, upstream] = [x.subarray(at, at + headDim), change.subarray(at, at + headDim)];
        expected.set(
          differences((moved) => dot(upstream, normalised(moved, gains[kind])), values),
          at,
        );
        normalised(values, new Float32Array(headDim).fill(1)).forEach((value, i) => {
          expectedGain[kind][i] = get(expectedGain[kind], i) + value * get(upstream, i);
        });
      }
      close(body(d), expected, 1e-5, 'dx');
      for (const kind of ['query', 'key'] as const) close(body(dGain[kind]), expectedGain[kind], 1e-5, `${kind} dGain`);
      expect(tailIsIntact(d) && tailIsIntact(dGain.query) && tailIsIntact(dGain.key)).toBe(true);
    });
  });
}

export function ropeContract(subject: Subject): void {
  describe('rope', () => {
    for (const headDim of [2, 8, 16, 64, 80]) {
      it(`turns pairs of queries and keys of ${headDim}, back again, and no values`, () => {
        const shape = { heads: 2, kvHeads: 1, headDim };
        const [rows, turning, context, half] = [17, 3, 40, headDim / 2];
        const stride = 4 * headDim;
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
          for (let head = 0; head < turning; head++) {
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
        subject().rope({ qkv: turned, table: cosSin, positions: where, rows, heads: shape, inverse: false });
        close(turned, expected, 1e-6, 'rope');
        for (let row = 0; row < rows; row++) {
          const values = [row * stride + turning * headDim, (row + 1) * stride] as const;
          sameBits(turned.subarray(...values), x.subarray(...values), 'values');
        }

        const row = rows - 1;
        const alone = floats(subject(), pickRows(x, [row], stride));
        subject().rope({
          qkv: alone,
          table: cosSin,
          positions: where.subarray(row),
          rows: 1,
          heads: shape,
          inverse: false,
        });
        sameBits(body(alone), pickRows(turned, [row], stride), 'last row alone');

        subject().rope({ qkv: turned, table: cosSin, positions: where, rows, heads: shape, inverse: true });
        close(turned, x, 1e-6, 'there and back');
      });
    }
  });
}

/** The gates: their kernels, and the function of the gate. */
const GATES = [
  { gate: 'swiglu', backward: 'swigluBackward', name: 'silu', act: (x: number) => x / (1 + Math.exp(-x)) },
  {
    gate: 'geglu',
    backward: 'gegluBackward',
    name: 'gelu',
    act: (x: number) => (x * (1 + Math.tanh(Math.sqrt(2 / Math.PI) * (x + 0.044715 * x ** 3)))) / 2,
  },
] as const;

export function gateContract(subject: Subject): void {
  describe.each(GATES)('$gate', ({ gate: kernel, backward, name, act }) => {
    const inputs = (rows: number, width: number) => {
      const gateUp = noise(rows * 2 * width, 'gate and up', 4);
      gateUp.set([-100, 100, -20, 20, 0].slice(0, width));
      return gateUp;
    };
    const gateAt = (width: number, i: number) => Math.floor(i / width) * 2 * width + (i % width);

    it(`is ${name}(gate) times up, also far out`, () => {
      for (const width of WIDTHS) {
        for (const rows of ROWS) {
          const gateUp = inputs(rows, width);
          const out = blank(subject(), rows * width);
          subject()[kernel]({ out, gateUp: floats(subject(), gateUp), rows, feedForward: width });
          const expected = Float64Array.from(body(out), (_, i) => {
            const gate = gateAt(width, i);
            return act(get(gateUp, gate)) * get(gateUp, gate + width);
          });
          close(out, expected, 2e-6, `${kernel} ${rows} x ${width}`);
          const alone = blank(subject(), width);
          subject()[kernel]({
            out: alone,
            gateUp: floats(subject(), pickRows(gateUp, [rows - 1], 2 * width)),
            rows: 1,
            feedForward: width,
          });
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
          subject()[backward]({
            dGateUp,
            dOut: floats(subject(), dOut),
            gateUp: floats(subject(), gateUp),
            rows,
            feedForward: width,
          });
          const expected = new Float64Array(gateUp.length);
          dOut.forEach((change, i) => {
            const gate = gateAt(width, i);
            const [g, u] = [get(gateUp, gate), get(gateUp, gate + width)];
            expected[gate] = get(
              differences((x) => change * act(get(x, 0)) * u, [g]),
              0,
            );
            expected[gate + width] = change * act(g);
          });
          close(dGateUp, expected, 1e-5, `${kernel} backward ${rows} x ${width}`);
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
          subject().embed({ out, table: floats(subject(), table), tokens: integers(subject(), tokens), rows, width });
          sameBits(body(out), pickRows(table, Array.from(tokens), width), 'embedding');
          expect(tailIsIntact(out)).toBe(true);

          const dOut = noise(rows * width, 'dOut');
          const expected = noise(vocabSize * width, 'before');
          const dTable = floats(subject(), expected);
          dOut.forEach((change, i) => {
            const at = get(tokens, Math.floor(i / width)) * width + (i % width);
            expected[at] = get(expected, at) + change;
          });
          subject().embedBackward({
            dTable,
            dOut: floats(subject(), dOut),
            tokens: integers(subject(), tokens),
            rows,
            width,
          });
          sameBits(body(dTable), expected, 'gradient of the table');
          expect(tailIsIntact(dTable)).toBe(true);
        }
      }
    });
  });
}

/** The row before each row in its sequence, for sequences of these lengths; a first row is before itself. */
const chainOf = (lengths: readonly number[]) =>
  lengths.flatMap((length, s) => {
    const first = lengths.slice(0, s).reduce((a, b) => a + b, 0);
    return Array.from({ length }, (_, t) => first + Math.max(0, t - 1));
  });

export function convolutionContract(subject: Subject): void {
  describe('convolution', () => {
    const shapes = [
      { width: 1, taps: 1, previous: chainOf([1, 2]) },
      { width: 5, taps: 3, previous: chainOf([4, 1, 2, 7]) },
      { width: 64, taps: 4, previous: chainOf([3, 13, 1]) },
      // A tree: rows 3 and 4 follow row 2, and rows 6 and 7 follow row 1.
      { width: 97, taps: 3, previous: [0, 0, 1, 2, 2, 4, 1, 1, 7] },
      { width: 172, taps: 2, previous: chainOf([70, 70]) },
    ];
    type Shape = (typeof shapes)[number];

    /** The rows of a window, the token's own first. */
    const windowOf = ({ previous, taps }: Shape, row: number): number[] => {
      const rows = [row];
      while (rows.length < taps && get(previous, get(rows, rows.length - 1)) !== rows.at(-1))
        rows.push(get(previous, get(rows, rows.length - 1)));
      return rows;
    };
    const formula = (shape: Shape, bcx: ArrayLike<number>, weight: ArrayLike<number>): Float64Array => {
      const { width, taps, previous } = shape;
      const part = (row: number, third: number, i: number) => get(bcx, (row * 3 + third) * width + i);
      return Float64Array.from({ length: previous.length * width }, (_, at) => {
        const [row, i] = [Math.floor(at / width), at % width];
        const terms = windowOf(shape, row).map(
          (q, j) => get(weight, (taps - 1 - j) * width + i) * part(q, 0, i) * part(q, 2, i),
        );
        return part(row, 1, i) * terms.reduce((a, b) => a + b, 0);
      });
    };
    const given = ({ width, taps, previous }: Shape) => ({
      bcx: noise(previous.length * 3 * width, 'bcx'),
      weight: noise(taps * width, 'taps'),
    });
    const run = ({ width, taps, previous }: Shape, bcx: Float32Array, weight: Float32Array) => {
      const rows = previous.length;
      const out = blank(subject(), rows * width);
      const memories = { bcx: floats(subject(), bcx), weight: floats(subject(), weight) };
      subject().convolution({ out, ...memories, previous: integers(subject(), previous), rows, width, taps });
      expect(tailIsIntact(out)).toBe(true);
      return body(out);
    };

    it('weighs the products of a token and of those before it in its sequence', () => {
      for (const shape of shapes) {
        const { bcx, weight } = given(shape);
        close(run(shape, bcx, weight), formula(shape, bcx, weight), 2e-6, `width ${shape.width}`);
      }
    });

    it('has the gradients that finite differences give, added to those of the weight', () => {
      for (const shape of shapes.slice(0, 4)) {
        const { width, taps, previous } = shape;
        const rows = previous.length;
        const { bcx, weight } = given(shape);
        const dOut = noise(rows * width, 'dOut');
        const before = noise(weight.length, 'before');
        const [dBcx, dWeight] = [blank(subject(), bcx.length), floats(subject(), before)];
        const memories = { bcx: floats(subject(), bcx), weight: floats(subject(), weight) };
        const change = { dBcx, dWeight, dOut: floats(subject(), dOut) };
        const order = integers(subject(), previous);
        subject().convolutionBackward({ ...change, ...memories, previous: order, rows, width, taps });
        // Columns do not meet, so one call moves a number of all of them.
        const column = (x: Float32Array, i: number) => x.filter((_, at) => at % width === i);
        for (let i = 0; i < width; i += Math.ceil(width / 5)) {
          const one = { width: 1, taps, previous };
          const [x, w, d] = [column(bcx, i), column(weight, i), column(dOut, i)];
          const byInput = differences((moved) => dot(d, formula(one, moved, w)), x);
          close(column(body(dBcx), i), byInput, 1e-5, `dBcx, column ${i} of ${width}`);
          const byWeight = differences((moved) => dot(d, formula(one, x, moved)), w);
          const sum = byWeight.map((value, tap) => value + get(before, tap * width + i));
          close(column(body(dWeight), i), sum, 1e-5, `dWeight, column ${i} of ${width}`);
        }
        expect(tailIsIntact(dBcx) && tailIsIntact(dWeight)).toBe(true);
      }
    });

    it('gives the same bits through a cache, token by token, in blocks, and after a copy', () => {
      const [width, taps, capacity, length] = [37, 3, 20, 19];
      const shape = { width, taps, previous: chainOf([length]) };
      const { bcx, weight } = given(shape);
      const expected = run(shape, bcx, weight);
      const products = blank(subject(), 3 * capacity * width);
      const feed = (slot: number, from: number, to: number) => {
        const at = Array.from({ length: to - from }, (_, t) => from + t);
        const out = blank(subject(), at.length * width);
        subject().convolutionCached({
          out,
          products,
          bcx: floats(subject(), pickRows(bcx, at, 3 * width)),
          weight: floats(subject(), weight),
          slots: integers(subject(), Array(at.length).fill(slot)),
          positions: integers(subject(), at),
          rows: at.length,
          capacity,
          width,
          taps,
        });
        sameBits(body(out), expected.subarray(from * width, to * width), `slot ${slot}, ${from} to ${to}`);
      };
      for (let t = 0; t < length; t++) feed(2, t, t + 1);
      feed(0, 0, 7);
      feed(0, 7, 8);
      subject().convolutionCopy({ products, from: 0, to: 1, length: 8, capacity, width });
      feed(1, 8, length);
      subject().convolutionCopy({ products, from: 2, to: 0, length: 5, capacity, width });
      feed(0, 5, length);
      expect(tailIsIntact(products)).toBe(true);
    });
  });
}
