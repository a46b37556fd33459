/** The exact expected score when the best, the worst or the most frequent of n samples is selected. */
import { ArgumentError } from '@drmas/engine/errors';

/**
 * The expected best score of n samples drawn with replacement from a task's scores: with x_1 <= ... <= x_m, the sum of
 * x_i ((i / m)^n - ((i - 1) / m)^n). Best-of-n selection reaches it with a perfect judge. The counterpart without
 * replacement, for scores of 0 and 1, is `passAtK`.
 * @throws ArgumentError when there is no score, one is not a finite number, or n is not a positive integer
 *
 * @example
 * ```ts
 * import { bestOfN } from 'drmas/tasks';
 *
 * bestOfN([0, 1], 2); // 0.75
 * ```
 */
export function bestOfN(scores: readonly number[], n: number): number {
  const m = scores.length;
  if (m === 0 || !scores.every(Number.isFinite))
    throw new ArgumentError('bestOfN needs at least one score, and finite numbers');
  checkDraws(n, 'bestOfN');
  const sorted = Float64Array.from(scores).sort();
  return sorted.reduce((sum, score, i) => sum + score * (((i + 1) / m) ** n - (i / m) ** n), 0);
}

/**
 * The expected worst score of n samples drawn with replacement. @throws ArgumentError as `bestOfN`
 *
 * @example
 * ```ts
 * import { worstOfN } from 'drmas/tasks';
 *
 * worstOfN([0, 1], 2); // 0.25
 * ```
 */
export function worstOfN(scores: readonly number[], n: number): number {
  return -bestOfN(
    scores.map((score) => -score),
    n,
  );
}

/**
 * The probability that the most frequent of n answers, drawn with replacement from a task's predictions, is the
 * reference; a tie goes to the answer that was drawn first. Answers are compared as texts; the time grows with the
 * number of answers times n³.
 * @throws ArgumentError when there is no prediction or n is not an integer from 1 to 1000
 *
 * @example
 * ```ts
 * import { majorityOfN } from 'drmas/tasks';
 *
 * majorityOfN(['7', '7', '8'], '7', 1); // 2/3
 * ```
 */
export function majorityOfN(predictions: readonly string[], reference: string, n: number): number {
  if (predictions.length === 0) throw new ArgumentError('majorityOfN needs at least one prediction');
  checkDraws(n, 'majorityOfN');
  if (n > MOST_VOTES) throw new ArgumentError(`majorityOfN: n must be at most ${MOST_VOTES}, got ${n}`);
  const votes = new Map<string, number>();
  for (const answer of predictions) votes.set(answer, (votes.get(answer) ?? 0) + 1 / predictions.length);
  const right = votes.get(reference) ?? 0;
  votes.delete(reference);
  let total = 0;
  for (let count = 1; count <= n; count++) total += some(right, n, count) * wins([...votes.values()], count, n - count);
  return total;
}

/** The largest n: beyond it the counts of ways overflow double precision. */
const MOST_VOTES = 1000;

/**
 * The probability that the other answers take `draws` draws and none of them exceeds `most`. If t of them reach `most`,
 * the case counts with the chance 1 / (1 + t) that none of these t came first.
 */
function wins(others: readonly number[], most: number, draws: number): number {
  // ways[t][d]: t answers reach `most`, d draws are taken.
  let ways: number[][] = [[1, ...new Array<number>(draws).fill(0)]];
  for (const p of others) {
    const next = Array.from({ length: ways.length + 1 }, () => new Array<number>(draws + 1).fill(0));
    ways.forEach((row, t) => {
      row.forEach((weight, d) => {
        for (let c = 0; weight > 0 && c <= Math.min(most, draws - d); c++) {
          const into = next[c === most ? t + 1 : t] as number[];
          into[d + c] = (into[d + c] as number) + weight * some(p, draws - d, c);
        }
      });
    });
    ways = next;
  }
  return ways.reduce((sum, row, t) => sum + (row[draws] as number) / (1 + t), 0);
}

/** The number of ways to give `count` of the `left` draws to an answer of probability p, weighted by p for each. */
function some(p: number, left: number, count: number): number {
  let ways = 1;
  for (let i = 1; i <= count; i++) ways *= ((left - count + i) / i) * p;
  return ways;
}

function checkDraws(n: number, name: string): void {
  if (!Number.isInteger(n) || n < 1) throw new ArgumentError(`${name}: n must be a positive integer, got ${n}`);
}
