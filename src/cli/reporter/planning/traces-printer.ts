/** The summary of traces for `drmas import`, and the traced team beside the trained one for `drmas learn`. */
import type { ScoredEvaluation } from '@drmas/engine/events';
import { evaluatedEpisodes, messageText } from '@drmas/engine/nouns';
import { commandText } from '@drmas/engine/platform';
import { type TracedTeam, type TraceImport, unreadTexts } from '../../../runs/traces.js';
import { type LabelledRow, labelled } from '../start-printer.js';
import { grouped, percent, significant, table, wrap } from '../text-layout.js';

/** The length of the longest text in the example of a row. */
const LONGEST = 200;

export function importLines(traces: TraceImport, width: number): string[] {
  const { agents, example, tasks, fields, masked, dropped, droppedTasks, score, heldOut, unread } = traces;
  const { all, kept, scored, mean } = traces.traces;
  const passages = Object.entries(masked).map(([kind, count]) => `${count} x ${kind}`);
  const head: LabelledRow[] = [
    ['traces', `${grouped(all)}, ${grouped(kept)} of them become demonstrations`],
    ['score', score === undefined ? 'none that counts' : `'${score}', mean ${significant(mean)} of ${scored} traces`],
    [
      'tasks',
      `${grouped(tasks)}: ${fields.join(', ')}${heldOut === undefined ? '' : `; ${grouped(heldOut)} are held out`}`,
    ],
    ['masked', passages.length === 0 ? 'nothing' : passages.join(', ')],
    dropped + droppedTasks > 0 && [
      'left out',
      `${grouped(dropped)} calls and ${grouped(droppedTasks)} tasks, by the redaction`,
    ],
    ...unreadTexts(unread).map((text) => ['not read', text]),
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
  return [
    ...labelled(head, width),
    '',
    ...table([['agent', 'calls', 'kept', 'read', 'written', 'model', 'tools'], ...rows]),
    ...wrap('kept of a call: the system prompt, the messages, the tools and the answer; nothing else of a span', width),
    '',
    ...(example === undefined ? [] : ['the first demonstration:', ...exampleLines(example, width), '']),
  ];
}

function exampleLines({ agent, messages }: NonNullable<TraceImport['example']>, width: number): string[] {
  return messages.flatMap((message, i) => {
    const text = messageText(message);
    const who = i === messages.length - 1 ? `${agent} ->` : `${agent} <- ${message.role}:`;
    return wrap(`  ${who} ${text.length > LONGEST ? `${text.slice(0, LONGEST)}…` : text}`, width);
  });
}

/**
 * The end of a run of `drmas learn`: the traced team beside the trained one.
 * @param first The evaluation after the warm start
 */
export function learntLines(
  traced: TracedTeam,
  first: ScoredEvaluation,
  last: ScoredEvaluation,
  run: string,
): string[] {
  const { scored, score, price } = traced;
  const agents = Object.values(last.agents);
  const episodes = evaluatedEpisodes(last);
  const tokens = (side: 'read' | 'written') =>
    agents.reduce((sum, agent) => sum + (agent.tokens?.[side] ?? 0), 0) / episodes;
  const cost =
    price === undefined ? '' : significant((1000 * (traced.read * price.read + traced.written * price.write)) / 1e6);
  const ownCost = last.cost === undefined ? 'your own machine' : significant((1000 * last.cost) / episodes);
  const { low, high } = last.interval;
  const share = scored > 0 && score > 0 ? [`${percent(last.averageAtK / score)} of the traced team's score`] : [];
  return [
    '',
    ...table([
      ['team', 'score', 'read', 'written', '1,000 tasks cost'],
      [
        'traced',
        scored === 0 ? 'none' : percent(score),
        grouped(Math.round(traced.read)),
        grouped(Math.round(traced.written)),
        cost,
      ],
      ['warm start', percent(first.averageAtK), '', '', ''],
      [
        'trained',
        percent(last.averageAtK),
        grouped(Math.round(tokens('read'))),
        grouped(Math.round(tokens('written'))),
        ownCost,
      ],
    ]),
    `trained: ${last.tasks} held-out tasks, interval ${percent(low)} to ${percent(high)}; traced: ${grouped(scored)} traces; read, written: tokens an episode`,
    ...share,
    `serve it: ${commandText(['npx', 'drmas', 'serve', run])}`,
  ];
}
