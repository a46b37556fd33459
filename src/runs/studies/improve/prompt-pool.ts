/**
 * A pool of candidates: sets of prompts with their success on the same tasks. A round changes a candidate that is best
 * at some task, so prompts that are good at different tasks stay. Source: Agrawal et al., arXiv 2507.19457 (GEPA).
 */
import { mean } from '@drmas/engine/math';
import type { SystemPrompts } from '../../../teams/rollout.js';

export interface Candidate {
  /** The round that proposed it. The first prompts have 0. */
  readonly round: number;
  readonly prompts: SystemPrompts;
  /** The mean success of each task of the pool, in [0, 1]; null for a task without a score. */
  readonly scores: readonly (number | null)[];
}

/** The mean over the tasks that have a score, in [0, 1]. 0 without any. */
export const poolScore = ({ scores }: Pick<Candidate, 'scores'>): number => {
  const known = scores.filter((score) => score !== null);
  return known.length === 0 ? 0 : mean(known);
};

/** The candidate with the highest score, the earlier one of equals. */
export const bestOf = (pool: readonly Candidate[]): Candidate =>
  pool.reduce((best, candidate) => (poolScore(candidate) > poolScore(best) ? candidate : best));

/**
 * Draws the candidate that a round changes, in proportion to the number of tasks at which it is best. A candidate is
 * left out if others are as good at each of its tasks.
 * @param pool not empty; all candidates have scores of the same tasks
 * @param uniform in [0, 1)
 */
export function parentOf(pool: readonly Candidate[], uniform: number): Candidate {
  let fronts = frontsOf(pool);
  const worstFirst = [...pool].sort((a, b) => poolScore(a) - poolScore(b) || b.round - a.round);
  for (const candidate of worstFirst) {
    const isNeeded = fronts.some((front) => front.length === 1 && front[0] === candidate);
    if (!isNeeded) fronts = fronts.map((front) => front.filter((other) => other !== candidate));
  }
  const drawn = fronts.flat();
  return drawn[Math.floor(uniform * drawn.length)] ?? bestOf(pool);
}

/** For each task with a score: the candidates with the highest one. */
function frontsOf(pool: readonly Candidate[]): Candidate[][] {
  const tasks = pool[0]?.scores.length ?? 0;
  const fronts = Array.from({ length: tasks }, (_, task) => {
    const known = pool.filter(({ scores }) => typeof scores[task] === 'number');
    const highest = Math.max(...known.map(({ scores }) => scores[task] as number));
    return known.filter(({ scores }) => scores[task] === highest);
  });
  return fronts.filter((front) => front.length > 0);
}
