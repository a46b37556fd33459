/** The parts of traces that an import cannot read, by reason. No part of a trace is left out without a reason. */

import { filePlace } from '@drmas/engine/errors';
import { grouped } from '@drmas/engine/host';

/** The reasons, as the summary of an import prints them. */
export const UNREAD = {
  file: 'files that end neither in .json nor in .jsonl nor in .ndjson',
  line: 'lines that are no JSON',
  deep: 'lines, calls and tasks with values nested too deep, such as JSON in JSON',
  row: 'rows that are no span, no score, and no batch of them',
  trace: 'traces without a call of a model',
  failed: 'calls that failed',
  input: 'calls without messages: tracing must record them (OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT=true)',
  answer: 'calls without an answer',
  unfinished: 'calls whose answer ended at a limit of tokens',
  filtered: 'calls whose answer a filter or an error ended',
  cut: 'calls with texts that a limit of the tracer cut off (OTEL_ATTRIBUTE_VALUE_LENGTH_LIMIT), or messages that are no JSON',
  dropped: 'calls of which the tracer dropped attributes or events: raise OTEL_SPAN_ATTRIBUTE_COUNT_LIMIT (128)',
  media: 'calls with images, audio or files, which agents cannot read',
  part: 'calls with parts of a message that drmas does not know',
  role: 'calls with a role that drmas does not know',
  system: 'calls with a system message after the first message',
  gap: 'calls with a result of a tool and without the call before it',
  unlisted: 'calls whose answer calls a tool that the trace does not list',
  arguments: 'calls whose answer calls a tool with arguments that are no JSON object or do not fit its schema',
  tool: 'tools without a name or a schema, in calls that are read without them',
  judge: 'calls that score the answers of agents, in the span of a scorer',
  choice: 'further answers of a call, whose first one is read',
  reasoning: 'answers that are read without their reasoning',
  score: 'scores that are no numbers',
  several: 'further scores of one name in a trace, the mean of which counts',
  taken: 'scores of traces whose task has a field `score` of its own, which stays',
  lone: 'scores of traces that are not in the files',
  task: 'tasks whose data is no object',
  tasks: 'further tasks of a trace, whose first one is read',
} as const;

export type UnreadReason = keyof typeof UNREAD;

/** A place in a file of traces. A file that is not read at all has no line. */
export interface TracePlace {
  readonly file: string;
  readonly line?: number;
}

export interface UnreadCount extends TracePlace {
  readonly count: number;
}

export type Unread = Readonly<Partial<Record<UnreadReason, UnreadCount>>>;

export class UnreadCounts {
  readonly #counts = new Map<UnreadReason, UnreadCount>();

  add(reason: UnreadReason, place: TracePlace): void {
    const { count, ...first } = this.#counts.get(reason) ?? { ...place, count: 0 };
    this.#counts.set(reason, { count: count + 1, ...first });
  }

  /** The counts in the order of the reasons. */
  get all(): Unread {
    const reasons = (Object.keys(UNREAD) as UnreadReason[]).filter((reason) => this.#counts.has(reason));
    return Object.fromEntries(reasons.map((reason) => [reason, this.#counts.get(reason)]));
  }
}

export function unreadTexts(unread: Unread): string[] {
  return (Object.keys(UNREAD) as UnreadReason[]).flatMap((reason) => {
    const { count, ...place } = unread[reason] ?? { count: 0 };
    return count === 0 ? [] : [`${grouped(count)} ${UNREAD[reason]} (${filePlace(place)})`];
  });
}
