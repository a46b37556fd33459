/** The report at the end of a run, from its events. */

import type { ScoredEvaluation } from '@drmas/engine/events';
import { runSpending } from '@drmas/engine/host';
import { finite, largest, mean } from '@drmas/engine/math';
import { HOW_TO_SUCCEED, headlineOf, measuresOf } from '@drmas/engine/nouns';
import { howToMove, unmovedAgents } from '../../runs/analysis.js';
import type { RunHistory } from './progress-printer.js';
import { scoredText, sliceLines, spendingLines } from './score-printer.js';
import { type TimeSpent, timeLines } from './start-printer.js';
import { fixed, nextCommands, percent, significant, sparkline, table, wrap } from './text-layout.js';

export function summaryLines(history: RunHistory, totalSeconds: number, width: number): string[] {
  const first = history.scores[0];
  const last = history.scores.at(-1);
  const spending = runSpending([...history.steps, ...history.evaluations]);
  return [
    ...(first && last ? [...scoreLines(history, first, last, width), '', ...sliceLines(last, width)] : []),
    ...(history.steps.length > 0
      ? [...curveLines(history, width), '', ...agentTable(history), ...unmovedLines(history, width), '']
      : []),
    ...(spending === undefined ? [] : [...spendingLines(spending, width), '']),
    'time by phase',
    ...timeLines({ ...phases(history), total: totalSeconds }).map((line) => `  ${line}`),
  ];
}

function scoreLines(
  { scores, started }: RunHistory,
  first: ScoredEvaluation,
  last: ScoredEvaluation,
  width: number,
): string[] {
  const isReward = headlineOf(scores, started?.success) === 'reward';
  const notes = [
    ...(last.unscored === undefined ? [] : [scoredText(last)]),
    ...(isReward ? wrap(HOW_TO_SUCCEED, width - 2) : []),
  ].map((line) => `  ${line}`);
  const samples = last.samples;
  const interval = ({ interval: { low, high } }: ScoredEvaluation) =>
    `[${fixed(100 * low, 1)}, ${fixed(100 * high, 1)}]`;
  if (first === last)
    return [
      isReward ? `reward ${significant(last.reward ?? null)}` : `score ${percent(last.averageAtK)} ${interval(last)}`,
      ...notes,
    ];
  const gain = 100 * (last.averageAtK - first.averageAtK);
  const level = `${Math.round(100 * last.interval.level)} % intervals over ${last.tasks} held-out tasks`;
  const narrow = [first, last].filter(({ interval: { low, high } }) => low === high);
  const earlier =
    narrow.length === 1
      ? `An earlier version of drmas wrote the interval of step ${narrow[0]?.step}, without a width for equal scores.`
      : '';
  const note = gain === 0 ? 'The scores are equal.' : overlapping(first.interval, last.interval) ? MAY_BE_CHANCE : '';
  const said = [note + earlier === '' ? level : `${level}.`, note, earlier].filter((part) => part !== '');
  const row = (name: string, of: (event: ScoredEvaluation) => string) => [name, of(first), '->', of(last)];
  const score = `score ${percent(first.averageAtK)} -> ${percent(last.averageAtK)} (${gain >= 0 ? '+' : ''}${fixed(gain, 1)} points)`;
  return [
    isReward ? `reward ${significant(first.reward ?? null)} -> ${significant(last.reward ?? null)}` : score,
    ...table([
      ['', `step ${first.step}`, '', `step ${last.step}`],
      row(`avg@${samples}`, (event) => percent(event.averageAtK)),
      row('', interval),
      row(`pass@${samples}`, (event) => percent(event.passAtK)),
      row(`maj@${samples}`, (event) => percent(event.majorityAtK)),
      ...measuresOf(last, scores).map(([name]) => row(name, (event) => measured(event, name, scores))),
    ]).map((line) => `  ${line}`),
    ...wrap(said.join(' '), width - 2).map((line) => `  ${line}`),
    ...notes,
  ];
}

type Bounds = Pick<ScoredEvaluation['interval'], 'low' | 'high'>;

const overlapping = (one: Bounds, other: Bounds) => one.low <= other.high && other.low <= one.high;

const MAY_BE_CHANCE =
  'They overlap: the difference may be chance. More evaluation.tasks or evaluation.samples make them narrower.';

function measured(event: ScoredEvaluation, name: string, all: readonly ScoredEvaluation[]): string {
  const measure = measuresOf(event, all).find(([label]) => label === name);
  return measure === undefined ? '' : significant(measure[1]);
}

function curveLines(history: RunHistory, width: number): string[] {
  const rewards = history.steps.flatMap(({ reward }) => reward?.mean ?? []);
  const [first = Number.NaN] = rewards;
  const range = `${fixed(first, 2)} to ${fixed(rewards.at(-1) ?? first, 2)}`;
  const low = rewards.reduce((least, reward) => Math.min(least, reward), 0);
  const curve = sparkline(rewards, width - 2, low, Math.max(1, largest(rewards)));
  const isReward = headlineOf(history.scores, history.started?.success) === 'reward';
  const shown = ({ averageAtK, reward = Number.NaN }: ScoredEvaluation) =>
    isReward ? significant(reward) : percent(averageAtK);
  const { best } = history;
  const kept = best === undefined ? [] : [`best evaluation: step ${best.step} (${best.by} ${significant(best.score)})`];
  const scores = history.scores.map(shown).join(' -> ');
  const shownRewards = rewards.length === 0 ? [] : [`training reward, ${range}`, `  ${curve}`];
  return [...shownRewards, ...(scores === '' ? [] : [`evaluations: ${scores}`]), ...kept];
}

/** Turns, invalid share, gradient norms, spikes, predicted inflation and largest advantage of every agent. */
function agentTable({ steps, spikes, failedEpisodes }: RunHistory): string[] {
  const names = [...new Set(steps.flatMap((step) => Object.keys(step.agents)))].sort();
  const rows = names.map((name) => {
    const agents = steps.flatMap((step) => step.agents[name] ?? []);
    const turns = agents.reduce((sum, agent) => sum + agent.turns, 0);
    const invalid = agents.reduce((sum, agent) => sum + agent.invalid * agent.turns, 0) / Math.max(1, turns);
    const played = [name, String(turns), fixed(100 * invalid, 1)];
    if (agents.some(({ frozen }) => frozen === true)) return [...played, 'frozen'];
    const norms = finite(agents.map((agent) => agent.gradientNorm));
    return [
      ...played,
      ...(norms.length === 0 ? ['-', '-'] : [significant(mean(norms)), significant(largest(norms))]),
      String(spikes.filter((spike) => (spike.agent ?? spike.policy) === name).length),
      significant(mean(agents.map((agent) => agent.inflation.predicted))),
      significant(largest(agents.map((agent) => agent.maxAbsAdvantage))),
    ];
  });
  const shared = spikes.filter((spike) => !names.includes(spike.agent ?? spike.policy)).length;
  return [
    ...table([['agent', 'turns', 'inv %', 'norm', 'max', 'spikes', 'infl.', 'max|A|'], ...rows]),
    ...(shared > 0 ? [`spikes of shared policies: ${shared}`] : []),
    ...(failedEpisodes > 0 ? [`failed episodes: ${failedEpisodes}`] : []),
    ...agreementLine(steps, names),
    'norm: of the gradient before clipping; infl.: predicted',
    'inflation of its second moment under shared statistics;',
    'max|A|: the largest advantage',
  ];
}

/** The agents whose policy has hardly moved, with advice; no line if there are none. */
function unmovedLines({ steps, scores, started }: RunHistory, width: number): string[] {
  const headline = headlineOf(scores, started?.success);
  const unmoved = unmovedAgents(steps, { headline, last: scores.at(-1) });
  return unmoved.length === 0 ? [] : [...unmoved, ...wrap(howToMove(steps, started), width)];
}

/** The cosines between the gradients of agents that share a policy; no line if no agents share one. */
function agreementLine(steps: RunHistory['steps'], names: readonly string[]): string[] {
  const cosines = names.flatMap((name) => {
    const values = steps.flatMap(({ agents }) => agents[name]?.agreement ?? []);
    return values.length === 0 ? [] : [`${name} ${fixed(mean(values), 2)}`];
  });
  return cosines.length === 0 ? [] : ['cosine of gradients in a shared policy:', `  ${cosines.join(', ')}`];
}

export function secondsOf(history: RunHistory): number {
  const { warmStart, sampling, training, evaluation } = phases(history);
  return warmStart + sampling + training + evaluation;
}

function phases({ warmups, steps, evaluations }: RunHistory): Omit<TimeSpent, 'total'> {
  const sum = (values: readonly number[]) => values.reduce((a, b) => a + b, 0);
  return {
    warmStart: sum(warmups.map((event) => event.seconds)),
    sampling: sum(steps.map((step) => step.phaseSeconds.rollout)),
    training: sum(steps.map((step) => step.phaseSeconds.advantage + step.phaseSeconds.update)),
    evaluation: sum(evaluations.map((event) => event.seconds)),
  };
}

/**
 * The commands to try next.
 * @param seeded Whether the run's seed was typed
 * @param rival The estimator to compare the run's estimator with
 * @param best Whether the run has a best checkpoint
 */
export function nextLines(
  request: readonly string[],
  runPath: string,
  { seed, seeded, rival, best }: { seed: number; seeded: boolean; rival: string; best: boolean },
): string[] {
  return nextCommands(
    ['report', runPath],
    ['evaluate', runPath, ...(best ? ['--checkpoint', 'best'] : [])],
    ['train', ...request, ...(seeded ? ['--seed', `${seed}`] : []), '--set', `advantage.type=${rival}`],
    ['train', ...request, '--seed', `${seed + 1}`],
  );
}
