/** The scores of a team on held-out tasks: avg@k, pass@k, maj@k, each with a bootstrap interval over tasks. */

import type { EvaluationScores, Interval } from '../../../base/events.js';
import { mean } from '../../../base/math.js';
import { type Episode, type EpisodeGroup, jsonText, successOf } from '../../../base/nouns.js';
import { bestAtK, bootstrapInterval } from '../../../teams/tasks.js';

/** Number of resamples of the bootstrap; its seed is fixed, so that equal scores have equal intervals. */
const RESAMPLES = 2000;

/** The scores of groups. A failed episode counts as 0, because the team has not solved the task. */
export function scoresOf(groups: readonly EpisodeGroup[], level: number): EvaluationScores {
  const scores = groups.map(({ episodes }) => episodes.map(successOf));
  const average = scores.map((ofTask) => mean(ofTask));
  const best = scores.map((ofTask) => Math.max(...ofTask));
  const majority = groups.map(({ episodes }) => majorityScore(episodes));
  return {
    tasks: groups.length,
    averageAtK: mean(average),
    passAtK: mean(best),
    majorityAtK: mean(majority),
    interval: { ...intervalOf(average, level), level },
    passInterval: intervalOf(best, level),
    majorityInterval: intervalOf(majority, level),
    passAt: passAt(scores),
  };
}

/** The bootstrap interval of the mean over tasks. */
export function intervalOf(perTask: readonly number[], level: number): Interval {
  const { low, high } = bootstrapInterval(perTask, { level, resamples: RESAMPLES, seed: 0 });
  return { low, high };
}

/** Estimates pass@k for k = 1, 2, 4 ... up to the samples a task, each without bias from all samples. */
function passAt(scores: readonly (readonly number[])[]): Record<string, number> {
  const samples = Math.min(...scores.map((ofTask) => ofTask.length));
  const estimates: Record<string, number> = {};
  for (let k = 1; k <= samples; k *= 2) estimates[k] = mean(scores.map((ofTask) => bestAtK(ofTask, k)));
  return estimates;
}

/**
 * The score of the most frequent answer; among equally frequent answers, the first. An episode without an answer has no
 * vote.
 */
function majorityScore(episodes: readonly Episode[]): number {
  const votes = new Map<string, { count: number; score: number }>();
  for (const episode of episodes) {
    const answer = answerOf(episode.outcome);
    if (answer === undefined) continue;
    const vote = votes.get(answer) ?? { count: 0, score: successOf(episode) };
    vote.count++;
    votes.set(answer, vote);
  }
  let best = { count: 0, score: 0 };
  for (const vote of votes.values()) if (vote.count > best.count) best = vote;
  return best.score;
}

/**
 * The outcome's field `answer`, if it has one: then the other fields do not matter. Otherwise the whole outcome.
 */
function answerOf(outcome: unknown): string | undefined {
  const answer = typeof outcome === 'object' && outcome !== null && 'answer' in outcome ? outcome.answer : outcome;
  return jsonText(answer);
}
