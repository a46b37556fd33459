/** The text of an answer to "which episode taught this?": the answers in question, and the parts that taught them. */
import { excerpt } from '@drmas/engine/host';
import { grouped, percent, significant, table, wrap } from '../../src/cli/reporter/text-layout.js';
import type { Cause, Effects, Why } from './why.js';

/** The most answers that are shown. */
const SHOWN = 3;

export function whyLines(why: Why, width: number): string[] {
  const { step, until, from, equal, answers, before, after, groups, episodes, agents, estimator } = why;
  const start = from === 0 ? 'the beginning of the run' : `the checkpoint of step ${from}`;
  const measured = groups.filter(({ taught }) => taught !== undefined);
  const guessed = groups.length - measured.length;
  return [
    ...wrap(`step ${step} was replayed from ${start}${equal ? '; its numbers equal those of the log' : ''}`, width),
    ...(equal
      ? []
      : wrap(
          'warning: the replayed step has other numbers than the log, so this run does not repeat: read the result as an estimate',
          width,
        )),
    '',
    `answers after step ${until}, most frequent first:`,
    ...answers
      .slice(0, SHOWN)
      .map(({ agent, task, text, count }) =>
        excerpt(`  ${count} x  ${agent} on ${task}: ${JSON.stringify(text)}`, width),
      ),
    ...(answers.length > SHOWN ? [`  ... and ${grouped(answers.length - SHOWN)} others`] : []),
    '',
    ...table([
      ['', 'log-prob', 'score'],
      effectsRow('before the step', before),
      effectsRow(`after step ${until}`, after),
    ]),
    '',
    ...causeTable('group', groups.length > 1 ? measured : []),
    ...(guessed > 0 && measured.length > 0
      ? [`${guessed === 1 ? '1 other group was' : `${grouped(guessed)} other groups were`} only guessed (--verify)`, '']
      : []),
    ...(measured.length === 0
      ? [...wrap('the step has one group: --episodes leaves out its episodes', width), '']
      : []),
    ...causeTable('episode', episodes),
    ...causeTable('agent', agents),
    ...causeTable('estimator', estimator === undefined ? [] : [estimator]),
    ...wrap(
      "taught: by how many nats it made the answers more likely, measured by learning from the step without it (an estimator: with it in place of the recipe's). score: the held-out score with it minus the score without it. guess: its share of the first-order effects on the answers",
      width,
    ),
  ];
}

const effectsRow = (name: string, { logprob, score }: Effects) => [name, significant(logprob), percent(score)];

function causeTable(kind: string, causes: readonly Cause[]): string[] {
  if (causes.length === 0) return [];
  const some = (key: 'reward' | 'guess') => causes.some((cause) => cause[key] !== undefined);
  const columns = ['taught', 'score', ...(some('reward') ? ['reward'] : []), ...(some('guess') ? ['guess'] : [])];
  const rows = causes.map((cause) => [
    cause.name,
    signed(cause.taught, significant),
    signed(cause.scored, (value) => `${(100 * value).toFixed(1)} points`),
    ...(some('reward') ? [cause.reward === undefined ? '' : significant(cause.reward)] : []),
    ...(some('guess') ? [signed(cause.guess, percent)] : []),
  ]);
  return [...table([[kind, ...columns], ...rows]), ''];
}

const signed = (value: number | undefined, text: (value: number) => string) =>
  value === undefined ? '' : `${value > 0 ? '+' : ''}${text(value)}`;
