import { type Clock, systemClock } from '../core/clock.js';
import { RunError } from '../core/errors.js';
import { EVENT_VERSION, type EventBody, type MetricSink, type RunEvent } from '../core/events.js';
import type { Files } from '../core/files.js';
import { type ChainedFile, type LogCursor, linesOf } from './files/chained-file.js';

/** The append-only log of a run. Each event is stamped, written, and then passed to the sinks in order. */
export class EventLog implements MetricSink {
  readonly #file: ChainedFile;
  readonly #clock: Clock;
  readonly #sinks: readonly MetricSink[];

  constructor(file: ChainedFile, options: { sinks?: readonly MetricSink[]; clock?: Clock }) {
    this.#file = file;
    this.#clock = options.clock ?? systemClock;
    this.#sinks = options.sinks ?? [];
  }

  get cursor(): Required<LogCursor> {
    return this.#file.cursor;
  }

  /** Stamps an event with the time and the version, writes it, and returns it. */
  emit(body: EventBody): RunEvent {
    const event = { ...body, time: this.#clock.now().toISOString(), version: EVENT_VERSION };
    this.write(event);
    return event;
  }

  /** Writes an event that is stamped already. */
  write(event: RunEvent): void {
    this.#file.append(JSON.stringify(event));
    for (const sink of this.#sinks) sink.write(event);
  }
}

/**
 * Reads the events of a log in order, with NaN restored where JSON has null. A last line that was cut off in mid-write
 * is left out.
 * @throws RunError when a line before the last is not an event
 */
export async function readEvents(files: Files, path: string): Promise<RunEvent[]> {
  const events: RunEvent[] = [];
  for await (const line of linesOf(files, path)) events.push(parseEvent(line, `${path}:${events.length + 1}`));
  return events;
}

function parseEvent(line: string, where: string): RunEvent {
  try {
    const event: unknown = JSON.parse(line);
    if (typeof event === 'object' && event !== null && 'type' in event) return withNumbers(event as RunEvent);
  } catch {
    // reported below, together with other lines that are not events
  }
  throw new RunError(`${where}: expected an event as one JSON object, got ${JSON.stringify(line.slice(0, 60))}`);
}

/** Restores NaN in a step's measurements, where JSON can only say null. */
function withNumbers(event: RunEvent): RunEvent {
  if (event.type !== 'step') return event;
  return { ...event, agents: numbersIn(event.agents), policies: numbersIn(event.policies) };
}

function numbersIn<T>(value: T): T {
  if (value === null) return Number.NaN as T;
  if (typeof value !== 'object') return value;
  return Object.fromEntries(Object.entries(value).map(([key, inner]) => [key, numbersIn(inner)])) as T;
}
