/** The answers that a question "who taught this?" is about, and their log-probs under other weights. */
import { RunError } from '@drmas/engine/errors';
import { mean } from '@drmas/engine/math';
import type { EpisodeGroup, Task, TaskSet, Turn } from '@drmas/engine/nouns';
import { scoreTurns, type TrainingRun, type TurnChain } from '../../src/method/index.js';

/** An answer with the number of times that it was given. */
export interface Answer {
  readonly agent: string;
  readonly task: string;
  readonly text: string;
  readonly count: number;
}

/** The answers of one policy. */
export interface PolicyAnswers {
  readonly policy: string;
  readonly chains: readonly TurnChain[];
}

/** The answers that are in question. Default: those of each agent that learns, whatever they say. */
interface Asked {
  readonly agent?: string | undefined;
  /** The text of the answers. */
  readonly answer?: string | undefined;
}

/**
 * The answers in question, by policy.
 * @throws RunError if the agent does not learn, or gave no such answer
 */
export function answersOf(
  { learners }: Pick<TrainingRun, 'learners'>,
  groups: readonly EpisodeGroup[],
  { agent, answer }: Asked,
): PolicyAnswers[] {
  const names = learners.flatMap(({ agents }) => Object.keys(agents));
  if (agent !== undefined && !names.includes(agent))
    throw new RunError(`no agent '${agent}' learns in this run; expected one of ${names.join(', ')}`);
  const answers = learners.map((learner) => ({
    policy: learner.name,
    chains: learner.turns(groups).flatMap((chain) => {
      const asked = chain.filter((turn) => isAsked(turn, { agent, answer }));
      // A chain is scored from its beginning: the answers in it that nobody asks about are left out of the score.
      return asked.length === 0 ? [] : [asked];
    }),
  }));
  const given = answers.filter(({ chains }) => chains.length > 0);
  if (given.length > 0) return given;
  const who = agent ?? 'no agent that learns';
  if (answer === undefined) throw new RunError(`${who} gave no answer to these tasks`);
  const all = answersOf({ learners }, groups, { agent });
  const texts = countedAnswers(groups, all)
    .slice(0, SOME)
    .map(({ text }) => JSON.stringify(text));
  throw new RunError(`${who} said ${JSON.stringify(answer)} to none of these tasks, but ${texts.join(', ')}`);
}

/** The most answers in an error. */
const SOME = 4;

const isAsked = (turn: Turn, { agent, answer }: Asked) =>
  turn.response.length > 0 &&
  (agent === undefined || turn.agent === agent) &&
  (answer === undefined || turn.text.trim() === answer.trim());

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

/** The distinct answers, most frequent first. */
export function countedAnswers(groups: readonly EpisodeGroup[], answers: readonly PolicyAnswers[]): Answer[] {
  const asked = new Set<Turn>(answers.flatMap(({ chains }) => chains.flat()));
  const counts = new Map<string, Answer>();
  for (const { task, episodes } of groups)
    for (const { turns } of episodes)
      for (const turn of turns) {
        if (!asked.has(turn)) continue;
        const { agent, text } = turn;
        const key = JSON.stringify([task.id, agent, text]);
        counts.set(key, { agent, task: task.id, text, count: (counts.get(key)?.count ?? 0) + 1 });
      }
  return [...counts.values()].sort((a, b) => b.count - a.count);
}

/** The most tasks of a set that are searched for an id. A family without an end has no last one. */
const SEARCHED = 100_000;

/**
 * A task by its id, from the step's own tasks, the held-out tasks, or those of training.
 * @throws RunError
 */
export function taskNamed(id: string, ofStep: readonly Task[], { test, train }: TrainingRun['tasks']): Task {
  const found = ofStep.find((task) => task.id === id) ?? taskIn(test, id) ?? taskIn(train, id);
  if (found !== undefined) return found;
  const some = [...ofStep.map((task) => task.id), ...firstIds(test)].slice(0, 6);
  throw new RunError(`there is no task '${id}'; there are, for example, ${some.join(', ')}`);
}

function taskIn(set: TaskSet, id: string): Task | undefined {
  for (let i = 0; i < Math.min(set.size, SEARCHED); i++) {
    const task = set.at(i);
    if (task.id === id) return task;
  }
  return undefined;
}

const firstIds = (set: TaskSet) => Array.from({ length: Math.min(set.size, 3) }, (_, i) => set.at(i).id);
