/** The summary of traces for `drmas import`, and the traced team beside the trained one for `drmas learn`. */
import type { EvaluationEvent } from '../../../base/events.js';
import { commandText } from '../../../base/platform.js';
import type { TraceImport } from '../../../runs/traces.js';
import { labelled } from '../start-printer.js';
import { grouped, percent, significant, table, wrap } from '../text-layout.js';

/** The length of the longest text in the example of a row. */
const LONGEST = 200;

/** The summary of `drmas import`: what would be kept of the traces. */
export function importLines(traces: TraceImport, width: number): string[] {
  const { agents, demonstrations, tasks, masked, dropped, score, heldOut } = traces;
  const { all, kept, scored, mean } = traces.traces;
  const passages = Object.entries(masked).map(([kind, count]) => `${count} x ${kind}`);
  const head = [
    ['traces', `${grouped(all)}, ${grouped(kept)} of them become demonstrations`],
    ['score', score === undefined ? 'none that counts' : `'${score}', mean ${significant(mean)} of ${scored} traces`],
    [
      'tasks',
      `${grouped(tasks.length)}: ${Object.keys(tasks[0] ?? {}).join(', ')}${heldOut === undefined ? '' : `; ${grouped(heldOut)} are held out`}`,
    ],
    ['masked', passages.length === 0 ? 'nothing' : passages.join(', ')],
    ...(dropped === 0 ? [] : [['left out', `${grouped(dropped)} calls, by the redaction`]]),
  ];
  const rows = Object.entries(agents).map(([name, agent]) => [
    name,
    grouped(agent.calls),
    grouped(agent.demonstrations),
    grouped(agent.read),
    grouped(agent.written),
    agent.models.join(' '),
    agent.tools.join(' '),
  ]);
  const [example] = demonstrations;
  return [
    ...labelled(head, width),
    '',
    ...table([['agent', 'calls', 'kept', 'read', 'written', 'model', 'tools'], ...rows]),
    ...wrap('kept of a call: the system prompt, the messages, the tools and the answer; nothing else of a span', width),
    '',
    ...(example === undefined ? [] : ['the first demonstration:', ...exampleLines(example, width), '']),
  ];
}

function exampleLines({ agent, messages }: TraceImport['demonstrations'][number], width: number): string[] {
  return messages.flatMap(({ role, content, toolCalls = [] }, i) => {
    const calls = toolCalls.map(({ name, arguments: values }) => `${name}(${values})`);
    const text = [content, ...calls].filter((part) => part !== '').join(' ');
    const who = i === messages.length - 1 ? `${agent} ->` : `${agent} <- ${role}:`;
    return wrap(`  ${who} ${text.length > LONGEST ? `${text.slice(0, LONGEST)}…` : text}`, width);
  });
}

/** Prices of a million tokens. */
export interface Prices {
  readonly read: number;
  readonly write: number;
}

/** The traced team beside the trained one. */
export interface LearntComparison {
  readonly traces: TraceImport;
  /** The first evaluation of the run, after the warm start, and the last. */
  readonly first: EvaluationEvent;
  readonly last: EvaluationEvent;
}

/** The end of `drmas learn`. */
export function learntLines(
  { traces, first, last }: LearntComparison,
  prices: Prices | undefined,
  run: string,
): string[] {
  const { all, mean, scored } = traces.traces;
  const traced = Object.values(traces.agents);
  const sum = (numbers: readonly number[]) => numbers.reduce((total, each) => total + each, 0);
  const before = {
    read: sum(traced.map(({ read }) => read)) / all,
    written: sum(traced.map(({ written }) => written)) / all,
  };
  const agents = Object.values(last.agents);
  const episodes = last.tasks * last.samples;
  const after = {
    read: sum(agents.map(({ tokens }) => tokens?.read ?? 0)) / episodes,
    written: sum(agents.map(({ tokens }) => tokens?.written ?? 0)) / episodes,
  };
  const cost = ({ read, written }: typeof before) =>
    prices === undefined ? '' : significant((1000 * (read * prices.read + written * prices.write)) / 1e6);
  const price = last.cost === undefined ? 'your own machine' : significant((1000 * last.cost) / episodes);
  const { low, high } = last.interval;
  const share = scored > 0 && mean > 0 ? [`${percent(last.averageAtK / mean)} of the traced team's score`] : [];
  return [
    '',
    ...table([
      ['team', 'score', 'read', 'written', '1,000 tasks cost'],
      [
        'traced',
        scored === 0 ? 'none' : percent(mean),
        grouped(Math.round(before.read)),
        grouped(Math.round(before.written)),
        cost(before),
      ],
      ['warm start', percent(first.averageAtK), '', '', ''],
      ['trained', percent(last.averageAtK), grouped(Math.round(after.read)), grouped(Math.round(after.written)), price],
    ]),
    `trained: ${last.tasks} held-out tasks, interval ${percent(low)} to ${percent(high)}; traced: ${grouped(scored)} traces; read, written: tokens an episode`,
    ...share,
    `serve it: ${commandText(['npx', 'drmas', 'serve', run])}`,
  ];
}
