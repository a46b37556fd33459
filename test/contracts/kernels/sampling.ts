import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { logSoftmax } from './head.js';
import { blank, body, floats, get, integers, noise, pickRows, type Subject, sameBits } from './support.js';

interface Draws {
  readonly logits: Float32Array; // [rows, vocabSize]
  readonly uniforms: ArrayLike<number>;
  readonly inverseTemperature: number;
  readonly topK: number;
  readonly topP: number;
}

/** Draw i of n lies in the middle of the i-th of n equal parts of [0, 1). */
const grid = (n: number) => Array.from({ length: n }, (_, i) => (i + 0.5) / n);

/** Probabilities after truncation; `topP` is a share of the tokens that topK kept. */
function truncated(logits: ArrayLike<number>, inverseTemperature: number, topK: number, topP: number): Float64Array {
  const p = logSoftmax(logits, inverseTemperature).logprobs.map(Math.exp);
  const order = Array.from(p.keys()).sort((a, b) => get(logits, b) - get(logits, a) || a - b);
  const best = order.slice(0, topK === 0 ? order.length : topK);
  const total = best.reduce((sum, v) => sum + get(p, v), 0);
  const kept = new Float64Array(p.length);
  let reached = 0;
  for (const v of best) {
    if (topP < 1 && reached > 0 && reached >= topP) break;
    kept[v] = get(p, v) / total;
    reached += get(kept, v);
  }
  const mass = kept.reduce((sum, value) => sum + value, 0);
  return kept.map((value) => value / mass);
}

export function samplingContract(subject: Subject): void {
  const sample = ({ logits, uniforms, inverseTemperature, topK, topP }: Draws) => {
    const rows = uniforms.length;
    const same = (value: number) => floats(subject(), new Float32Array(rows).fill(value));
    const tokens = subject().allocateIntegers(rows).fill(-1);
    const logprobs = blank(subject(), rows);
    subject().sampleTokens({
      tokens,
      logprobs,
      logits: floats(subject(), logits),
      uniforms: floats(subject(), uniforms),
      inverseTemperature: same(inverseTemperature),
      topK: integers(subject(), new Int32Array(rows).fill(topK)),
      topP: same(topP),
      rows,
      vocabSize: logits.length / rows,
    });
    return { tokens, logprobs };
  };

  const repeat = (row: ArrayLike<number>, rows: number) => {
    const logits = new Float32Array(row.length * rows);
    for (let r = 0; r < rows; r++) logits.set(row, r * row.length);
    return logits;
  };

  /** Log-probs of the tokens as the trainer computes them. */
  const trained = (logits: Float32Array, tokens: Int32Array, inverseTemperature: number) => {
    const rows = tokens.length;
    const logprobs = blank(subject(), rows);
    subject().tokenLogprobs({
      logprobs,
      logSumExp: blank(subject(), rows),
      entropy: blank(subject(), rows),
      logits: floats(subject(), logits),
      targets: tokens,
      inverseTemperature: floats(subject(), new Float32Array(rows).fill(inverseTemperature)),
      rows,
      vocabSize: logits.length / rows,
    });
    return body(logprobs);
  };

  describe('sampleTokens', () => {
    it('draws every token as often as its probability says, in order of id', () => {
      const draws = 1024;
      for (const vocabSize of [1, 2, 5, 32, 139]) {
        for (const [inverseTemperature, topK, topP] of [
          [1, 0, 1],
          [0.5, 0, 1],
          [1.4285714626312256, 0, 1],
          [1, 3, 1],
          [1, 1, 1],
          [1, 1000, 1],
          [1, 0, 0.9],
          [1, 0, 0.3],
          [1, 0, 0],
          [0.75, 10, 0.8],
        ] as const) {
          const row = noise(vocabSize, 'logits', 3);
          const logits = repeat(row, draws);
          const { tokens } = sample({ logits, uniforms: grid(draws), inverseTemperature, topK, topP });
          const counts = new Float64Array(vocabSize);
          for (const token of tokens) counts[token] = get(counts, token) + 1;
          expect(tokens, 'larger draws give larger ids').toEqual(tokens.toSorted());
          truncated(row, inverseTemperature, topK, topP).forEach((p, v) => {
            const what = `vocabulary ${vocabSize}, top-k ${topK}, top-p ${topP}, token ${v}`;
            expect(Math.abs(get(counts, v) - p * draws), what).toBeLessThan(1.01);
            if (p === 0) expect(get(counts, v), what).toBe(0);
          });
        }
      }
    });

    it('reports the very log-probs that the trainer computes, wherever the row stands', () => {
      for (const vocabSize of [1, 5, 32, 139, 1000]) {
        for (const inverseTemperature of [0, 0.5, 1, 1.4285714626312256]) {
          const rows = 33;
          const logits = noise(rows * vocabSize, 'logits', 6);
          const uniforms = noise(rows, 'uniforms', 0.5).map((value) => value + 0.5);
          const { tokens, logprobs } = sample({ logits, uniforms, inverseTemperature, topK: 7, topP: 0.95 });
          const scale = inverseTemperature === 0 ? 1 : inverseTemperature;
          sameBits(body(logprobs), trained(logits, tokens, scale), `vocabulary ${vocabSize}`);
          const alone = sample({
            logits: pickRows(logits, [rows - 1], vocabSize),
            uniforms: uniforms.subarray(rows - 1),
            inverseTemperature,
            topK: 7,
            topP: 0.95,
          });
          expect(alone.tokens[0]).toBe(tokens[rows - 1]);
          sameBits(body(alone.logprobs), body(logprobs).subarray(rows - 1), 'last row alone');
        }
      }
    });

    it('gives ties to the lower id', () => {
      const logits = Float32Array.of(0, 2, -1, 2, 2, 1);
      const greedy = sample({ logits, uniforms: [0.9], inverseTemperature: 0, topK: 0, topP: 1 });
      expect(Array.from(greedy.tokens)).toEqual([1]);
      const few = (topK: number, topP: number) =>
        Array.from(
          sample({ logits: repeat(logits, 64), uniforms: grid(64), inverseTemperature: 1, topK, topP }).tokens,
        );
      expect([...new Set(few(2, 1))]).toEqual([1, 3]);
      expect([...new Set(few(0, 0.2))]).toEqual([1]);
      expect([...new Set(few(0, 0.5))]).toEqual([1, 3]);
    });

    it('gives a draw that falls on the border of two tokens to the latter', () => {
      const draw = { logits: new Float32Array(8), uniforms: [0.25, 0.5], inverseTemperature: 1, topK: 0, topP: 1 };
      expect(Array.from(sample(draw).tokens)).toEqual([1, 2]);
    });

    it('never draws a token without probability, at the ends of [0, 1) least of all', () => {
      const logits = Float32Array.of(-1e4, 1e4, -1e4, 1e4, -1e4);
      const last = 1 - 2 ** -24;
      for (const topK of [0, 3]) {
        for (const topP of [1, 0.999]) {
          const ends = sample({
            logits: repeat(logits, 2),
            uniforms: [0, last],
            inverseTemperature: 1,
            topK,
            topP,
          });
          expect(Array.from(ends.tokens)).toEqual([1, 3]);
          expect(body(ends.logprobs).every(Number.isFinite)).toBe(true);
        }
      }
    });

    it('inverts the cumulative distribution for any settings', () => {
      fc.assert(
        fc.property(
          fc.integer({ min: 1, max: 80 }),
          fc.integer({ min: 0, max: 90 }),
          fc.float({ min: 0, max: 1, noNaN: true }),
          fc.float({ min: 0.125, max: 4, noNaN: true }),
          fc.integer({ min: 0, max: 2 ** 24 - 1 }),
          fc.integer({ min: 0, max: 1000 }),
          (vocabSize, topK, topP, inverseTemperature, draw, seed) => {
            const logits = noise(vocabSize, `logits ${seed}`, 5);
            const uniform = draw / 2 ** 24;
            const { tokens } = sample({ logits, uniforms: [uniform], inverseTemperature, topK, topP });
            const token = get(tokens, 0);
            // Rounding may move the edges of the kept set and of a token's share a little.
            const fits = [topP, Math.max(0, topP - 1e-5), Math.min(1, topP + 1e-5)].some((edge) => {
              const p = truncated(logits, inverseTemperature, topK, edge);
              const below = p.slice(0, token).reduce((sum, value) => sum + value, 0);
              return get(p, token) > 0 && uniform >= below - 1e-5 && uniform <= below + get(p, token) + 1e-5;
            });
            expect(fits).toBe(true);
          },
        ),
        { seed: 2, numRuns: 300 },
      );
    });
  });
}
