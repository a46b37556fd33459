/** The lines of `drmas improve`: the plan, each round, and the result. */

import type { ImprovementRound } from '../../../method/store.js';
import type { PairedInterval } from '../../../runs/analysis.js';
import type { Improvement, ImprovementRequest, ImprovementResult } from '../../../runs/studies.js';
import { episodesOf, poolScore } from '../../../runs/studies.js';
import { points, scoreText } from '../ablation-printer.js';
import { scoredText, type Unscored } from '../score-printer.js';
import { grouped, nearPath, nextCommands, percent, visible, wrap } from '../text-layout.js';

/** The plan: agents, proposals and episodes, before anything is played. */
export function improvementPlanLines(
  improvement: Pick<ImprovementRequest, 'recipe' | 'record' | 'checkpoint' | 'heldOutTasks'>,
): string[] {
  const { recipe, record, checkpoint } = improvement;
  const { agents, proposals, tasks, samples, endpoint, pool } = record;
  const episodes = episodesOf(improvement);
  return [
    `prompts   of ${agents.join(', ')} in ${recipe.name}, ${checkpoint === undefined ? 'at the start of reinforcement' : `at step ${checkpoint.step}`}`,
    `asks      ${endpoint.model} at ${endpoint.url}, at most ${grouped(proposals)} times`,
    `episodes  at most ${grouped(episodes.rounds)} in rounds of ${tasks} tasks x ${samples}, before and after each proposal`,
    ...(pool === undefined ? [] : [`          and ${grouped(episodes.pool)} on the ${pool} tasks of the pool`]),
    `          and ${grouped(episodes.heldOut)} on held-out tasks, if a prompt was accepted`,
  ];
}

/** The result of a round. */
export function roundLines(round: ImprovementRound, width: number): string[] {
  const { agent, comparison, problem, kept, score, scores } = round;
  if (agent === undefined) return [`without changes: ${percent(score)} of the tasks`];
  if (problem !== undefined) return wrap(`proposal ${round.round}, ${agent}: not tried: ${visible(problem)}`, width);
  if (comparison === undefined) return [];
  const solved = scores === undefined ? '' : `, ${percent(poolScore({ scores }))} of the pool's tasks`;
  const verdict = kept ? `kept${solved}` : 'not kept';
  return wrap(`proposal ${round.round}, ${agent}: ${differenceText(comparison)}: ${verdict}`, width);
}

interface Difference extends Unscored {
  readonly mean: number;
  readonly interval?: PairedInterval['interval'] | undefined;
}

function differenceText({ mean, interval, ...counts }: Difference): string {
  const bounds = interval === undefined ? '' : ` [${points(interval.low)}, ${points(interval.high)}]`;
  const missing = counts.unscored === undefined ? '' : ` (${scoredText(counts)})`;
  return `${points(mean)} points${bounds}${missing}`;
}

/** The accepted prompts with their gain, and the commands that play and train with them. */
export function improvementLines(
  { directory, prompts, rounds, heldOut, isStored }: ImprovementResult,
  { record: { source, checkpoint, proposals, pool }, recipe }: Pick<Improvement, 'record' | 'recipe'>,
  width: number,
): string[] {
  const stored = 'the improvement had ended, so nothing was played; --proposals N allows more proposals';
  const before = isStored ? wrap(stored, width) : [];
  if (heldOut === undefined) {
    const none = rounds.at(-1)?.failures.length === 0 ? 'no episode failed' : 'no proposal has won';
    const stay = `${none}: the prompts stay the same; the proposals are in ${nearPath(directory)}`;
    return [...before, ...wrap(stay, width)];
  }
  const made = rounds.length - 1;
  const solved = pool === undefined ? 'no episode failed any more' : 'a candidate solves all tasks of the pool';
  const ended = made < proposals ? [`ended after ${made} of at most ${proposals} proposals: ${solved}`] : [];
  const { first, last } = heldOut;
  const isTrained = checkpoint === undefined && Object.keys(recipe.policies).length > 0;
  const file = `${nearPath(directory)}/prompts.json`;
  return [
    ...before,
    ...ended.flatMap((line) => wrap(line, width)),
    ...Object.entries(prompts).flatMap(([agent, prompt]) => [
      `the new prompt of ${agent}:`,
      ...visible(prompt)
        .split('\n')
        .flatMap((line) => wrap(line, width - 2).map((part) => `  ${part}`)),
    ]),
    ...wrap(
      `on held-out tasks: ${scoreText(first.averageAtK)} -> ${scoreText(last.averageAtK)}, ${differenceText(heldOut)}`,
      width,
    ),
    ...nextCommands([isTrained ? 'train' : 'evaluate', nearPath(source), '--set', `@${file}`]),
  ];
}
