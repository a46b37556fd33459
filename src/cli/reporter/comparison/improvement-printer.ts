/** What an improvement of prompts shows: what it will take, each round, and what came of it. */

import type { PairedInterval } from '../../../report/analysis/paired-interval.js';
import type { ImprovementRound } from '../../../store/improvement-record.js';
import type { Improvement, ImprovementResult } from '../../../studies/improve/improve-prompts.js';
import { episodesOf } from '../../../studies/improve/request-improvement.js';
import { points } from '../ablation-printer.js';
import { grouped, nearPath, percent, visible, wrap } from '../text-layout.js';

/** What is asked of whom, before anything is played. */
export function improvementPlanLines(improvement: Pick<Improvement, 'recipe' | 'record' | 'checkpoint'>): string[] {
  const { recipe, record, checkpoint } = improvement;
  const { agents, proposals, tasks, samples, endpoint } = record;
  const { rounds, heldOut } = episodesOf(improvement);
  return [
    `prompts   of ${agents.join(', ')} in ${recipe.name}, ${checkpoint === undefined ? 'as reinforcement would begin' : `at step ${checkpoint.step}`}`,
    `asks      ${endpoint.model} at ${endpoint.url}, at most ${grouped(proposals)} times`,
    `episodes  at most ${grouped(rounds)} in rounds of ${tasks} tasks x ${samples}, before and after each proposal`,
    `          and ${grouped(heldOut)} on held-out tasks, where a prompt was accepted`,
  ];
}

/** What became of a round. */
export function roundLines(round: ImprovementRound, width: number): string[] {
  const { agent, comparison, problem, kept, score } = round;
  if (agent === undefined) return [`as it is: ${percent(score)} of the tasks`];
  if (problem !== undefined) return wrap(`proposal ${round.round}, ${agent}: not tried: ${visible(problem)}`, width);
  if (comparison === undefined) return [];
  const verdict = kept ? 'kept' : 'not kept';
  return wrap(`proposal ${round.round}, ${agent}: ${differenceText(comparison)}: ${verdict}`, width);
}

interface Difference {
  readonly mean: number;
  readonly interval?: PairedInterval['interval'] | undefined;
}

function differenceText({ mean, interval }: Difference): string {
  const bounds = interval === undefined ? '' : ` [${points(interval.low)}, ${points(interval.high)}]`;
  return `${points(mean)} points${bounds}`;
}

/** The accepted prompts and what they are worth, and how to play and train with them. */
export function improvementLines(
  { directory, prompts, rounds, heldOut }: ImprovementResult,
  { source, checkpoint }: Improvement['record'],
  width: number,
): string[] {
  if (heldOut === undefined) {
    const none = rounds.at(-1)?.failures.length === 0 ? 'no episode failed' : 'no proposal has won';
    return wrap(`${none}: the prompts stay as they are; what was proposed lies in ${nearPath(directory)}`, width);
  }
  const { first, last } = heldOut;
  const file = `${nearPath(directory)}/prompts.json`;
  return [
    ...Object.entries(prompts).flatMap(([agent, prompt]) => [
      `the new prompt of ${agent}:`,
      ...visible(prompt)
        .split('\n')
        .flatMap((line) => wrap(line, width - 2).map((part) => `  ${part}`)),
    ]),
    ...wrap(
      `on held-out tasks: ${percent(first.averageAtK)} -> ${percent(last.averageAtK)}, ${differenceText(heldOut)}`,
      width,
    ),
    'next',
    checkpoint === undefined
      ? `  npx drmas train ${nearPath(source)} --set @${file}`
      : `  npx drmas evaluate ${nearPath(source)} --set @${file}`,
  ];
}
