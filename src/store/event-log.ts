import { type Clock, systemClock } from '../core/clock.js';
import { RunError } from '../core/errors.js';
import { EVENT_VERSION, type EventBody, type MetricSink, type RunEvent } from '../core/events.js';
import type { Files } from '../core/files.js';

/** A position in the log: the events before it belong to a checkpoint, those after it do not. */
export interface LogCursor {
  readonly bytes: number;
  readonly lines: number;
}

const utf8 = new TextEncoder();

/** The append-only log of a run. Each event is stamped, written, and then passed to the sinks in order. */
export class EventLog implements MetricSink {
  readonly path: string;
  readonly #files: Files;
  readonly #clock: Clock;
  readonly #sinks: readonly MetricSink[];
  #bytes: number;
  #lines: number;

  constructor(
    files: Files,
    path: string,
    options: { cursor?: LogCursor; sinks?: readonly MetricSink[]; clock?: Clock },
  ) {
    this.path = path;
    this.#files = files;
    this.#clock = options.clock ?? systemClock;
    this.#sinks = options.sinks ?? [];
    this.#bytes = options.cursor?.bytes ?? 0;
    this.#lines = options.cursor?.lines ?? 0;
  }

  get cursor(): LogCursor {
    return { bytes: this.#bytes, lines: this.#lines };
  }

  /** Stamps an event with the time and the version, writes it, and returns it. */
  emit(body: EventBody): RunEvent {
    const event = { ...body, time: this.#clock.now().toISOString(), version: EVENT_VERSION };
    this.write(event);
    return event;
  }

  /** Writes an event that is stamped already. */
  write(event: RunEvent): void {
    const line = `${JSON.stringify(event)}\n`;
    this.#files.append(this.path, line, this.#bytes);
    this.#bytes += utf8.encode(line).length;
    this.#lines++;
    for (const sink of this.#sinks) sink.write(event);
  }
}

/**
 * Reads the events of a log in order, with NaN restored where JSON has null. A last line that was cut off in mid-write
 * is left out.
 * @throws RunError when a line before the last is not an event
 */
export async function readEvents(files: Files, path: string): Promise<RunEvent[]> {
  const lines = (await files.readText(path)).split('\n');
  lines.pop(); // the text after the last newline: empty, or a torn line
  return lines.map((line, index) => parseEvent(line, `${path}:${index + 1}`));
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
