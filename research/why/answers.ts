/** The answers that a question "who taught this?" is about, and their log-probs under other weights. */
import { mean } from '@drmas/engine/math';
import type { EpisodeGroup, Task, TaskSet } from '@drmas/engine/nouns';
import { scoreTurns, type TrainingRun, type TurnChain } from '../../src/method/index.js';

/** The answers of one policy. */
export interface PolicyAnswers {
  readonly policy: string;
  readonly chains: readonly TurnChain[];
}

/** The turns in which an agent says a text, by policy. */
export function answersOf(
  { learners }: Pick<TrainingRun, 'learners'>,
  groups: readonly EpisodeGroup[],
  { agent, answer }: { readonly agent: string; readonly answer: string },
): PolicyAnswers[] {
  const answers = learners.map((learner) => ({
    policy: learner.name,
    chains: learner.turns(groups).flatMap((chain) => {
      const asked = chain.filter(
        (turn) => turn.response.length > 0 && turn.agent === agent && turn.text.trim() === answer.trim(),
      );
      // A chain is scored from its beginning: the answers in it that are not asked about are left out of the score.
      return asked.length === 0 ? [] : [asked];
    }),
  }));
  const given = answers.filter(({ chains }) => chains.length > 0);
  if (given.length === 0) throw new Error(`${agent} said ${JSON.stringify(answer)} in no episode`);
  return given;
}

/** The mean log-prob of an answer under the current weights, in nats. */
export async function logprobOf(
  { learners }: Pick<TrainingRun, 'learners'>,
  answers: readonly PolicyAnswers[],
): Promise<number> {
  const sums = await Promise.all(
    answers.map(async ({ policy, chains }) => {
      const learner = learners.find(({ name }) => name === policy);
      if (learner === undefined) return [];
      const rows = await scoreTurns(chains, (samples) => learner.handle.logprobs(samples));
      return Array.from(rows.values(), sum);
    }),
  );
  return mean(sums.flat());
}

const sum = (row: Float32Array) => row.reduce((total, value) => total + value, 0);

/** The task of a set with an id. */
export function taskNamed(id: string, set: TaskSet): Task {
  for (let i = 0; i < set.size; i++) {
    const task = set.at(i);
    if (task.id === id) return task;
  }
  throw new Error(`there is no task '${id}'`);
}
