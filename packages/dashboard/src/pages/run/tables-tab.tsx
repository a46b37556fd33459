import type { EvaluationScores } from '@drmas/engine/events';
import { duration, grouped, percent, significant } from '@drmas/engine/host';
import { finite, largest, mean } from '@drmas/engine/math';
import { measuresOf, shareOfForeign } from '@drmas/engine/nouns';
import { type EventsByKind, overTurns, rewardOverTurns } from '../../../../../src/runs/analysis.js';
import { Table } from '../../parts/table.js';
import { clean, intervalText } from '../../parts/texts.js';
import { runAddress } from '../../routes.js';
import type { HeardRun } from '../../run-store.js';
import { spendingRows } from './spending.js';

/** The numbers of a run: agents over all steps, evaluations, spikes, warnings, failed episodes. */
export function TablesTab({ run }: { readonly run: HeardRun }) {
  const { log } = run;
  const nothing = log.steps.length + log.evaluations.length + log.warnings.length + log.failures.length === 0;
  if (nothing) return <p class="empty">Nothing to count yet.</p>;
  return (
    <>
      <Table title="Agents over all steps" header={AGENT_HEADER} rows={log.agents.map((name) => agentRow(name, log))} />
      <SpendingTable log={log} />
      <Table
        title="Evaluations"
        header={EVALUATION_HEADER}
        latest
        rows={log.scores.flatMap((event) => evaluationRows(event, log.scores))}
      />
      <Table
        title="Spikes"
        header={['step', 'agent or policy', 'norm', 'median before', 'answer', 'episodes behind it']}
        rows={log.spikes.map(({ type, step, agent, policy, gradientNorm, median, action, episodes }) => [
          step,
          clean(agent ?? policy),
          significant(gradientNorm),
          significant(median),
          type === 'skipped' ? 'not made' : action,
          <span key="episodes" class="wide">
            {episodes.map((name) => (
              <a key={name} href={runAddress(run.name, 'episodes', { step: String(step), task: taskOf(name) })}>
                {clean(name)}
              </a>
            ))}
          </span>,
        ])}
      />
      <Table
        title="Warnings"
        header={['step', 'what', 'message']}
        rows={log.warnings.map(({ step, code, message }) => [
          step ?? '',
          code,
          <span key="message" class="wide">
            {clean(message)}
          </span>,
        ])}
      />
      <Table
        title="Failed episodes"
        header={['step', 'why', 'episode', 'message']}
        rows={log.failures.map(({ step, reason, action, task, episode, message }) => [
          step,
          `${reason}, ${action}`,
          clean(`${task}/${episode}`),
          <span key="message" class="wide">
            {clean(message)}
          </span>,
        ])}
      />
    </>
  );
}

function SpendingTable({ log }: { readonly log: EventsByKind }) {
  const rows = spendingRows(log);
  const isPriced = rows.some(({ cost }) => cost !== undefined);
  const header = ['tokens', 'read', 'written', 'trained', 'an episode', 'time', ...(isPriced ? ['price'] : [])];
  return (
    <Table
      title="Costs"
      header={header}
      rows={rows.map(({ name, tokens, perEpisode, seconds, cost }) => [
        clean(name),
        grouped(tokens.read),
        grouped(tokens.written),
        grouped(tokens.trained),
        perEpisode === undefined ? '' : grouped(Math.round(perEpisode)),
        seconds === undefined ? '' : duration(seconds),
        ...(isPriced ? [cost === undefined ? '' : significant(cost)] : []),
      ])}
    />
  );
}

/** The task of an episode's name in events, `task/sample`. */
const taskOf = (episode: string) => episode.replace(/\/[^/]*$/, '');

const AGENT_HEADER = [
  'agent',
  'turns',
  'reward',
  'invalid',
  'norm, mean',
  'norm, largest',
  'spikes',
  'inflation, mean',
  'largest |A|',
  'tokens a turn',
  'entropy at last',
  'called in',
  'reward there',
  'foreign in history',
];

function agentRow(name: string, log: EventsByKind): string[] {
  const steps = log.steps.flatMap(({ agents }) => agents[name] ?? []);
  const turns = steps.reduce((sum, step) => sum + step.turns, 0);
  const most = (of: (step: (typeof steps)[number]) => number) => {
    const values = finite(steps.map(of));
    return values.length === 0 ? '' : significant(largest(values));
  };
  const calls = steps.flatMap((step) => step.calls ?? []);
  const histories = steps.flatMap(({ history }) => history ?? []);
  const frozen = steps.some((step) => step.frozen === true);
  const learnt = (cell: () => string) => (frozen ? 'frozen' : cell());
  // A number that no step has measured is an empty cell, and not 0.
  const measured = (values: readonly number[]) => (values.length === 0 ? '' : significant(mean(values)));
  return [
    clean(name),
    grouped(turns),
    measured(finite([rewardOverTurns(steps)])),
    percent(overTurns(steps, ({ invalid }) => invalid)),
    learnt(() => measured(finite(steps.map(({ gradientNorm }) => gradientNorm)))),
    learnt(() => most(({ gradientNorm }) => gradientNorm)),
    learnt(() => String(log.spikes.filter(({ agent, policy }) => (agent ?? policy) === name).length)),
    learnt(() => measured(finite(steps.map(({ inflation }) => inflation.predicted)))),
    learnt(() => most(({ maxAbsAdvantage }) => maxAbsAdvantage)),
    significant(overTurns(steps, ({ responseTokens }) => responseTokens)),
    learnt(() => steps.flatMap(({ entropy }) => (entropy == null ? [] : significant(entropy))).at(-1) ?? ''),
    calls.length === 0 ? '' : percent(mean(calls.map(({ share }) => share))),
    measured(finite(calls.map(({ success }) => success))),
    histories.length === 0 ? '' : percent(shareOfForeign(histories)),
  ];
}

const EVALUATION_HEADER = ['step', 'part', 'tasks x samples', 'avg@k', 'pass@k', 'maj@k', 'measured'];

function evaluationRows(event: EventsByKind['scores'][number], run: EventsByKind['scores']): string[][] {
  const row = (part: string, scores: EvaluationScores, measured = '') => [
    String(event.step),
    clean(part),
    `${scores.tasks} x ${event.samples}`,
    `${percent(scores.averageAtK)} ${intervalText(scores.interval)}`,
    `${percent(scores.passAtK)} ${scores.passInterval === undefined ? '' : intervalText(scores.passInterval)}`,
    `${percent(scores.majorityAtK)} ${scores.majorityInterval === undefined ? '' : intervalText(scores.majorityInterval)}`,
    clean(measured),
  ];
  const measured = measuresOf(event, run).map(([name, value]) => `${name} ${significant(value)}`);
  const slices = Object.entries(event.slices ?? {}).flatMap(([field, parts]) =>
    Object.entries(parts).map(([value, scores]) => row(`${field}: ${value}`, scores)),
  );
  return [row('all', event, measured.join(', ')), ...slices];
}
