import type { Heads } from '@drmas/engine/internal/tensor/kernel-arguments';
import type { HostKernels } from '@drmas/engine/kernels';
import { describe, it } from 'vitest';
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
  type Subject,
  sameBits,
} from './support.js';

const widthOf = ({ heads, kvHeads, headDim }: Heads) => (heads + 2 * kvHeads) * headDim;

const everyShape: Heads[] = [
  ...[2, 8, 16, 64, 80].flatMap((headDim) => [1, 2, 4].map((kvHeads) => ({ heads: 4, kvHeads, headDim }))),
  { heads: 4, kvHeads: 2, headDim: 8, window: 3 },
  { heads: 4, kvHeads: 1, headDim: 16, window: 20 },
];

/** Groups of an odd number of heads, and heads that fill no whole number of vectors or panels. */
const oddShapes: Heads[] = [
  { heads: 5, kvHeads: 1, headDim: 4 },
  { heads: 7, kvHeads: 1, headDim: 6 },
  { heads: 8, kvHeads: 1, headDim: 10 },
  { heads: 6, kvHeads: 2, headDim: 24 },
  { heads: 3, kvHeads: 1, headDim: 48 },
  { heads: 2, kvHeads: 2, headDim: 128 },
  // Windows that are shorter than a tile, a block of keys and a block of queries, and longer.
  ...[1, 7, 16, 33, 60, 96].map((window) => ({ heads: 2, kvHeads: 1, headDim: 4, window })),
  { heads: 4, kvHeads: 4, headDim: 24, window: 35 },
];
/** Around the tiles of 12 queries, the blocks of 48 and the blocks of 16 keys. */
const ODD_LENGTHS = [11, 1, 13, 47, 49, 97];

function startsOf(lengths: readonly number[]): number[] {
  const starts = [0];
  for (const length of lengths) starts.push(get(starts, starts.length - 1) + length);
  return starts;
}

const range = (from: number, to: number) => Array.from({ length: to - from }, (_, i) => from + i);

/** Softmax over the keys up to each row's own, or the window's last of them, head by head, as the textbook has it. */
function formula(qkv: ArrayLike<number>, lengths: readonly number[], shape: Heads) {
  const { heads, kvHeads, headDim, window = Number.POSITIVE_INFINITY } = shape;
  const width = widthOf(shape);
  const starts = startsOf(lengths);
  const rows = starts.at(-1) ?? 0;
  const out = new Float64Array(rows * heads * headDim);
  const logSumExp = new Float64Array(rows * heads);
  const x = Float64Array.from(qkv); // one kind of array, whose elements V8 reads fast
  const scores = new Float64Array(rows);
  for (const [s, start] of starts.slice(0, -1).entries()) {
    for (let row = start; row < start + get(lengths, s); row++) {
      for (let head = 0; head < heads; head++) {
        const key = heads + Math.floor(head / (heads / kvHeads));
        const value = key + kvHeads;
        const query = row * width + head * headDim;
        const keys = row - start + 1;
        const first = Math.max(0, keys - window);
        let max = -Infinity;
        for (let j = first; j < keys; j++) {
          const at = (start + j) * width + key * headDim;
          let score = 0;
          for (let d = 0; d < headDim; d++) score += (x[query + d] as number) * (x[at + d] as number);
          scores[j] = score / Math.sqrt(headDim);
          max = Math.max(max, scores[j] as number);
        }
        let total = 0;
        const mixed = out.subarray((row * heads + head) * headDim, (row * heads + head + 1) * headDim);
        for (let j = first; j < keys; j++) {
          const weight = Math.exp((scores[j] as number) - max);
          const at = (start + j) * width + value * headDim;
          total += weight;
          for (let d = 0; d < headDim; d++) mixed[d] = (mixed[d] as number) + weight * (x[at + d] as number);
        }
        for (let d = 0; d < headDim; d++) mixed[d] = (mixed[d] as number) / total;
        logSumExp[row * heads + head] = max + Math.log(total);
      }
    }
  }
  return { out, logSumExp };
}

function run(kernels: HostKernels, qkv: Float32Array, lengths: readonly number[], shape: Heads) {
  const { heads, headDim } = shape;
  const starts = startsOf(lengths);
  const rows = starts.at(-1) ?? 0;
  const out = blank(kernels, rows * heads * headDim);
  const logSumExp = blank(kernels, rows * heads);
  const packed = integers(kernels, starts);
  kernels.attention({
    out,
    logSumExp,
    qkv: floats(kernels, qkv),
    starts: packed,
    sequences: lengths.length,
    heads: shape,
  });
  return { out, logSumExp, starts: packed };
}

const noisyRows = (lengths: readonly number[], shape: Heads, spread = 2) =>
  noise((startsOf(lengths).at(-1) ?? 0) * widthOf(shape), 'qkv', spread);

function backward(
  kernels: HostKernels,
  qkv: Float32Array,
  dOut: Float32Array,
  lengths: readonly number[],
  shape: Heads,
) {
  const { out, logSumExp, starts } = run(kernels, qkv, lengths, shape);
  const dQkv = blank(kernels, qkv.length);
  kernels.attentionBackward({
    dQkv,
    dOut: floats(kernels, dOut),
    out,
    logSumExp,
    qkv: floats(kernels, qkv),
    starts,
    sequences: lengths.length,
    heads: shape,
  });
  return dQkv;
}

/** Cases are the same for every implementation, and slow to compute: they are computed once. */
let oddCases: ReturnType<typeof oddCase>[] | undefined;

/** One case: the formula's result, and how fast a loss rises in a random direction. */
function oddCase(shape: Heads) {
  const qkv = noisyRows(ODD_LENGTHS, shape, 1.5);
  const expected = formula(qkv, ODD_LENGTHS, shape);
  const dOut = noise(expected.out.length, 'dOut');
  const direction = noise(qkv.length, 'direction', 1 / Math.sqrt(qkv.length));
  const along = (step: ArrayLike<number>) => {
    const moved = Float64Array.from(qkv, (value, i) => value + get(step, 0) * get(direction, i));
    return dot(dOut, formula(moved, ODD_LENGTHS, shape).out);
  };
  return { shape, qkv, dOut, direction, expected, slope: differences(along, [0]) };
}

const LENGTHS = [1, 17, 5, 67, 1];

/** Gradients of the formula by finite differences, by shape, computed once for all the kernels of a file. */
const byDifferences = new Map<Heads, Float64Array>();

export function attentionContract(subject: Subject): void {
  describe('attention', () => {
    it('is causal softmax attention within each packed sequence', () => {
      for (const shape of everyShape) {
        const qkv = noisyRows(LENGTHS, shape);
        const { out, logSumExp } = run(subject(), qkv, LENGTHS, shape);
        const expected = formula(qkv, LENGTHS, shape);
        close(out, expected.out, 5e-6, `attention ${JSON.stringify(shape)}`);
        close(logSumExp, expected.logSumExp, 2e-6, 'log-sum-exp');
      }
    });

    it('holds for long sequences and for scores far apart', () => {
      const shape = { heads: 2, kvHeads: 1, headDim: 16 };
      // At spread 30 scores reach a thousand, so float32 has a spacing of 0.0001. Values are of size 30.
      for (const [spread, tolerance] of [
        [1, 5e-6],
        [30, 2e-3],
      ] as const) {
        const qkv = noisyRows([300], shape, spread);
        const { out, logSumExp } = run(subject(), qkv, [300], shape);
        const expected = formula(qkv, [300], shape);
        close(out, expected.out, tolerance, `long, spread ${spread}`);
        close(logSumExp, expected.logSumExp, 2e-6, 'log-sum-exp');
      }
    });

    it('gives a sequence the same bits alone, elsewhere, and beside one that is not a number', () => {
      for (const shape of everyShape) {
        const width = widthOf(shape);
        const qkv = noisyRows(LENGTHS, shape);
        const together = run(subject(), qkv, LENGTHS, shape);
        const starts = startsOf(LENGTHS);
        for (const s of [1, 3]) {
          const [from, to] = [get(starts, s), get(starts, s + 1)];
          const part = qkv.slice(from * width, to * width);
          const outWidth = shape.heads * shape.headDim;
          const expected = together.out.subarray(from * outWidth, to * outWidth);
          const alone = run(subject(), part, [to - from], shape);
          sameBits(body(alone.out), expected, 'alone');
          sameBits(body(alone.logSumExp), together.logSumExp.subarray(from * shape.heads, to * shape.heads), 'lse');

          const spoilt = new Float32Array(3 * width + part.length).fill(Number.NaN);
          spoilt.set(part, 3 * width);
          const beside = run(subject(), spoilt, [3, to - from], shape);
          sameBits(body(beside.out).subarray(3 * outWidth), expected, 'beside not-a-numbers');
        }
      }
    });

    it('has the gradient of its formula', () => {
      for (const shape of everyShape) {
        const small = shape.headDim <= 8;
        const lengths = small ? [1, 5, 3] : [1, 23, 5];
        const qkv = noisyRows(lengths, shape, 1.5);
        const dOut = noise((qkv.length / widthOf(shape)) * shape.heads * shape.headDim, 'dOut');
        const dQkv = backward(subject(), qkv, dOut, lengths, shape);
        const loss = (x: ArrayLike<number>) => dot(dOut, formula(x, lengths, shape).out);
        const what = `attention backward ${JSON.stringify(shape)}`;
        if (small) {
          const expected = byDifferences.get(shape) ?? differences(loss, qkv);
          byDifferences.set(shape, expected);
          close(dQkv, expected, 2e-5, what);
        }
        // A step in a random direction gives one number that every element of the gradient enters.
        const direction = noise(qkv.length, 'direction', 1 / Math.sqrt(qkv.length));
        const along = (step: ArrayLike<number>) =>
          loss(Float64Array.from(qkv, (value, i) => value + get(step, 0) * get(direction, i)));
        close(Float32Array.of(dot(body(dQkv), direction)), differences(along, [0]), 2e-5, what);
      }
    });

    it('is the formula, with its gradient, whatever the lengths and groups', () => {
      oddCases ??= oddShapes.map(oddCase);
      for (const { shape, qkv, dOut, direction, expected, slope } of oddCases) {
        const what = JSON.stringify(shape);
        const { out, logSumExp } = run(subject(), qkv, ODD_LENGTHS, shape);
        close(out, expected.out, 5e-6, what);
        close(logSumExp, expected.logSumExp, 2e-6, `log-sum-exp ${what}`);
        const dQkv = backward(subject(), qkv, dOut, ODD_LENGTHS, shape);
        close(Float32Array.of(dot(body(dQkv), direction)), slope, 2e-5, `backward ${what}`);
      }
    });

    it('gives the gradient of a sequence the same bits alone and beside another', () => {
      const shape = { heads: 4, kvHeads: 2, headDim: 16 };
      const width = widthOf(shape);
      const qkv = noisyRows(LENGTHS, shape);
      const dOut = noise((qkv.length / width) * shape.heads * shape.headDim, 'dOut');
      const together = backward(subject(), qkv, dOut, LENGTHS, shape);
      const starts = startsOf(LENGTHS);
      for (const [s, length] of LENGTHS.entries()) {
        const rows = range(get(starts, s), get(starts, s + 1));
        const part = pickRows(qkv, rows, width);
        const ownChange = pickRows(dOut, rows, shape.heads * shape.headDim);
        const alone = backward(subject(), part, ownChange, [length], shape);
        sameBits(body(alone), pickRows(together, rows, width), `sequence ${s}`);
      }
    });
  });
}

interface Step {
  readonly slot: number;
  readonly position: number;
  readonly row: number; // of qkv
  /** Default: 0. */
  readonly alike?: number;
}

/** A cache whose unused positions are not numbers, and the outputs of all rows that were fed to it. */
class Cache {
  readonly #kernels: HostKernels;
  readonly #shape: Heads;
  readonly #qkv: Float32Array;
  readonly #keys: Float32Array;
  readonly #values: Float32Array;
  readonly out: Float32Array;

  constructor(kernels: HostKernels, shape: Heads, qkv: Float32Array) {
    this.#kernels = kernels;
    this.#shape = shape;
    this.#qkv = qkv;
    const size = kernels.cacheSlotSize({ capacity: CAPACITY, heads: shape }) * SLOTS;
    this.#keys = blank(kernels, size);
    this.#values = blank(kernels, size);
    this.out = new Float32Array((qkv.length / widthOf(shape)) * shape.heads * shape.headDim).fill(Number.NaN);
  }

  feed(steps: readonly Step[]): void {
    if (steps.length === 0) return;
    const { heads, headDim } = this.#shape;
    const out = blank(this.#kernels, steps.length * heads * headDim);
    this.#kernels.attentionCached({
      out,
      keys: this.#keys,
      values: this.#values,
      qkv: floats(
        this.#kernels,
        pickRows(
          this.#qkv,
          steps.map(({ row }) => row),
          widthOf(this.#shape),
        ),
      ),
      slots: integers(
        this.#kernels,
        steps.map(({ slot }) => slot),
      ),
      positions: integers(
        this.#kernels,
        steps.map(({ position }) => position),
      ),
      alike: integers(
        this.#kernels,
        steps.map(({ alike = 0 }) => alike),
      ),
      rows: steps.length,
      capacity: CAPACITY,
      heads: this.#shape,
    });
    const width = heads * headDim;
    for (const [i, { row }] of steps.entries()) this.out.set(out.subarray(i * width, (i + 1) * width), row * width);
  }

  copy(from: number, to: number, length: number): void {
    this.#kernels.cacheCopy({
      keys: this.#keys,
      values: this.#values,
      from,
      to,
      length,
      capacity: CAPACITY,
      heads: this.#shape,
    });
  }
}

const CAPACITY = 100;
const SLOTS = 10;

export function cacheContract(subject: Subject): void {
  describe('attentionCached', () => {
    const starts = startsOf(LENGTHS);
    const slotOf = [3, 0, 5, 2, 4];
    /** Positions from..to - 1 of sequence s, as far as it has them. */
    const part = (s: number, from: number, to: number, slot = get(slotOf, s)): Step[] =>
      range(Math.min(from, get(LENGTHS, s)), Math.min(to, get(LENGTHS, s))).map((position) => ({
        slot,
        position,
        row: get(starts, s) + position,
      }));
    const everyPart = (from: number, to: number) => range(0, LENGTHS.length).flatMap((s) => part(s, from, to));
    const plans: Record<string, (cache: Cache) => void> = {
      'all at once': (cache) => cache.feed(everyPart(0, CAPACITY)),
      'all at once, last rows first': (cache) => cache.feed(everyPart(0, CAPACITY).reverse()),
      'sequence by sequence': (cache) => {
        for (const s of range(0, LENGTHS.length)) cache.feed(part(s, 0, CAPACITY));
      },
      'in two chunks': (cache) => {
        cache.feed(everyPart(0, 9));
        cache.feed(everyPart(9, CAPACITY));
      },
      'token by token': (cache) => {
        for (const position of range(0, CAPACITY)) cache.feed(everyPart(position, position + 1));
      },
      'prefill beside decoding': (cache) => {
        cache.feed(part(1, 0, 16));
        cache.feed([...part(3, 0, 40), ...part(1, 16, 17), ...part(0, 0, 1)]);
        cache.feed([...part(3, 40, 41), ...part(2, 0, 5), ...part(4, 0, 1)]);
        cache.feed(part(3, 41, CAPACITY));
      },
      'after a copy to another slot': (cache) => {
        cache.feed(everyPart(0, 33));
        cache.copy(get(slotOf, 3), 6, 33);
        cache.copy(get(slotOf, 3), 1, 20);
        cache.feed([...part(3, 33, 50, 6), ...part(3, 20, 33, 1)]);
        cache.feed(part(3, 50, CAPACITY, 6));
      },
    };

    for (const [name, play] of Object.entries(plans)) {
      it(`gives the bits of attention: ${name}`, () => {
        for (const shape of everyShape) {
          const qkv = noisyRows(LENGTHS, shape);
          const expected = body(run(subject(), qkv, LENGTHS, shape).out);
          const cache = new Cache(subject(), shape, qkv);
          play(cache);
          sameBits(cache.out, expected, JSON.stringify(shape));
        }
      });
    }

    it('gives the bits of attention whatever the lengths and groups, and wherever a prompt goes on', () => {
      const begins = startsOf(ODD_LENGTHS);
      for (const shape of oddShapes) {
        const qkv = noisyRows(ODD_LENGTHS, shape);
        const expected = body(run(subject(), qkv, ODD_LENGTHS, shape).out);
        for (const size of [1, 2, 3, 5, 13, 46]) {
          const cache = new Cache(subject(), shape, qkv);
          const pieces = (slot: number, length: number, from: number) =>
            range(Math.min(from, length), Math.min(from + size, length)).map((position) => ({
              slot,
              position,
              row: get(begins, slot) + position,
            }));
          for (let from = 0; from < CAPACITY; from += size)
            cache.feed(ODD_LENGTHS.flatMap((length, slot) => pieces(slot, length, from)));
          sameBits(cache.out, expected, `${size} at a time, ${JSON.stringify(shape)}`);
        }
      }
    });

    it('gives the bits of attention to rows whose slots begin alike', () => {
      const lengths = [70, 64, 75, 50, 66, 90, 67, 40, 36, 34];
      const alikeBefore = [0, 61, 61, 20, 48, 48, 66, 5, 0, 33];
      // Each sequence as rows of qkv: it begins with rows of the one before, and goes on with rows of its own.
      const sequences: number[][] = [];
      for (const [s, length] of lengths.entries()) {
        const begin = sequences.at(-1)?.slice(0, get(alikeBefore, s)) ?? [];
        sequences.push([...begin, ...range(100 * s, 100 * s + length - begin.length)]);
      }
      const common = (one: readonly number[], other: readonly number[] = []) => {
        const end = one.findIndex((row, i) => row !== other[i]);
        return end < 0 ? one.length : end;
      };
      for (const shape of [...everyShape, ...oddShapes]) {
        const qkv = noisyRows([100 * sequences.length], shape);
        const part = pickRows(qkv, sequences.flat(), widthOf(shape));
        const expected = body(run(subject(), part, lengths, shape).out);
        for (const first of [16, 33, 66]) {
          const cache = new Cache(subject(), shape, qkv);
          const step = (slot: number, position: number) => ({
            slot,
            position,
            row: get(sequences[slot] ?? [], position),
          });
          for (const [slot, length] of lengths.entries())
            cache.feed(range(0, Math.min(first, length)).map((position) => step(slot, position)));
          for (let position = first; position < CAPACITY; position++) {
            const slots = range(0, SLOTS).filter((slot) => position < get(lengths, slot));
            cache.feed(
              slots.map((slot, i) => {
                const before = sequences[slots[i - 1] ?? -1];
                return { ...step(slot, position), alike: common(sequences[slot] ?? [], before) };
              }),
            );
          }
          const outWidth = shape.heads * shape.headDim;
          sameBits(pickRows(cache.out, sequences.flat(), outWidth), expected, `${first}, ${JSON.stringify(shape)}`);
        }
      }
    });
  });
}
