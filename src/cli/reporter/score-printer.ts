/** An evaluation's scores by the parts of its tasks, and the reward of each agent. */

import type { EvaluationEvent, EvaluationScores, Interval, ScoredEvaluation } from '@drmas/engine/events';
import { type RunSpending, runSpending, type Spending, type TokenCount } from '@drmas/engine/host';
import { measuresOf } from '@drmas/engine/nouns';
import { BENCHMARK } from '../../teams/tasks.js';
import { columns } from './columns.js';
import { duration, fixed, grouped, percent, short, significant, table, wrap } from './text-layout.js';

/** The length at which names of parts are cut. */
const LONGEST_NAME = 24;

/** One table for each field that divides the evaluation, without intervals if the lines would be too long. */
export function sliceLines({ slices = {}, benchmarkMean, samples }: EvaluationEvent, width: number): string[] {
  return Object.entries(slices).flatMap(([field, parts]) => {
    const lines = (of: (scores: Scores) => string[], gap: readonly string[]) =>
      table([
        [field, 'tasks', `avg@${samples}`, ...gap, `pass@${samples}`, ...gap, `maj@${samples}`],
        ...Object.entries(parts).map(([name, scores]) => [cut(name), String(scores.tasks), ...of(scores)]),
        ...(field === BENCHMARK && benchmarkMean !== undefined ? [['mean of these', '', ...of(benchmarkMean)]] : []),
      ]);
    const whole = lines(scoreCells, ['']);
    const fits = whole.every((line) => columns(line) <= width);
    return [...(fits ? whole : lines((scores) => scoreCells(scores).filter((_, i) => i % 2 === 0), [])), ''];
  });
}

export interface Unscored {
  readonly episodes?: number | undefined;
  readonly unscored?: number | undefined;
}

/** `37 of 40 episodes scored`: the reward of the others failed. */
export const scoredText = ({ episodes = 0, unscored = 0 }: Unscored) =>
  `${episodes - unscored} of ${episodes} episodes scored`;

const cut = (name: string) => (name.length > LONGEST_NAME ? `${name.slice(0, LONGEST_NAME - 1)}…` : name);

/** All scores of an evaluation with their intervals, pass@k for every k, the rewards of the agents, and metrics. */
export function evaluationLines(event: ScoredEvaluation, width: number): string[] {
  const { samples, passAt = {}, agents, rewardInterval } = event;
  const ks = Object.entries(passAt).map(([k, score]) => `pass@${k} ${percent(score)}`);
  const [average = '', averageInterval = '', pass = '', passInterval = '', majority = '', majorityInterval = ''] =
    scoreCells(event);
  const rewards = Object.entries(agents).flatMap(([agent, { reward, rewardInterval }]) =>
    reward === undefined || rewardInterval === undefined
      ? []
      : [[`reward of ${agent}`, significant(reward), rangeText(rewardInterval, significant)]],
  );
  const others = measuresOf(event)
    .filter(([name]) => !rewards.some(([shown]) => shown === name))
    .map(([name, value]) => [
      name,
      significant(value),
      name === 'reward' && rewardInterval !== undefined ? rangeText(rewardInterval, significant) : '',
    ]);
  const spending = runSpending([event]);
  return [
    ...table([
      [`avg@${samples}`, average, averageInterval],
      [`pass@${samples}`, pass, passInterval],
      [`maj@${samples}`, majority, majorityInterval],
      ...rewards,
      ...others,
    ]),
    ...(event.unscored === undefined ? [] : [scoredText(event)]),
    ...(ks.length > 1 ? [ks.join(', ')] : []),
    ...(spending === undefined ? [] : ['', ...spendingLines(spending, width)]),
    '',
    ...sliceLines(event, width),
  ];
}

type Scores = NonNullable<EvaluationEvent['benchmarkMean']> & Partial<EvaluationScores>;

function scoreCells(scores: Scores): string[] {
  const { averageAtK, interval, passAtK, passInterval, majorityAtK, majorityInterval } = scores;
  const cells = [
    [averageAtK, interval],
    [passAtK, passInterval],
    [majorityAtK, majorityInterval],
  ] as const;
  return cells.flatMap(([value, range]) => [percent(value), range === undefined ? '' : rangeText(range, points)]);
}

const points = (fraction: number) => fixed(100 * fraction, 1);

const rangeText = ({ low, high }: Interval, show: (value: number) => string) => `[${show(low)}, ${show(high)}]`;

export function spendingLines({ agents, episodes, seconds, updated, ...all }: RunSpending, width: number): string[] {
  const each = ({ tokens, cost }: Spending) => [
    short((tokens.read + tokens.written) / Math.max(1, episodes)),
    ...(all.cost === undefined ? [] : [cost === undefined ? '-' : significant(cost)]),
  ];
  const rows = [...Object.entries(agents), ['all', all] as const].map(([name, spending]) => [
    name,
    ...cells(spending.tokens),
    ...each(spending),
  ]);
  const header = ['tokens', 'read', 'written', 'trained', 'an episode', ...(all.cost === undefined ? [] : ['cost'])];
  const note = `of ${grouped(episodes)} episodes in ${duration(seconds)}; trained: prompts and responses of the turns that agents learned from; ${short(updated)} tokens went through the updates, where equal rows count once and rows without an advantage not at all; an episode: read plus written, per episode`;
  return [...table([header, ...rows]), ...wrap(note, width)];
}

export function expectedLines(
  agents: Readonly<Record<string, { readonly episode: TokenCount; readonly cost?: number }>>,
  cost: number | undefined,
  width: number,
): string[] {
  const rows = Object.entries(agents).map(([name, agent]) => [
    name,
    ...cells(agent.episode),
    ...(cost === undefined ? [] : [agent.cost === undefined ? '-' : significant(agent.cost)]),
  ]);
  return [
    ...table([
      ['an episode', 'read', 'written', 'trained at most', ...(cost === undefined ? [] : ['run costs'])],
      ...rows,
    ]),
    ...(cost === undefined ? [] : wrap(`the run costs about ${significant(cost)}, without a warm start`, width)),
  ];
}

const cells = ({ read, written, trained }: TokenCount) => [read, written, trained].map(short);
