import { type ChainedFile, type LogCursor, linesOf } from '../../base/disk.js';
import { RunError } from '../../base/errors.js';
import { EVENT_VERSION, type EventBody, type RunEvent } from '../../base/events.js';
import type { Files, RunListener } from '../../base/host.js';
import { type Clock, systemClock } from '../../base/host.js';

/** The append-only log of a run. It stamps each event, writes it, and passes it to the listeners in order. */
export class EventLog {
  readonly #file: ChainedFile;
  readonly #clock: Clock;
  readonly #listeners: readonly RunListener[];

  constructor(file: ChainedFile, options: { listeners?: readonly RunListener[]; clock?: Clock }) {
    this.#file = file;
    this.#clock = options.clock ?? systemClock;
    this.#listeners = options.listeners ?? [];
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

  /** Writes an event that already has its stamp. */
  write(event: RunEvent): void {
    this.#file.append(JSON.stringify(event));
    for (const listener of this.#listeners) void listener.event?.(event);
  }
}

/**
 * Reads the events of a log in order. A null in a measurement becomes NaN. A last line that was cut off during a write
 * is omitted.
 * @throws RunError if a line before the last is not an event
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

/** Restores NaN in a step's measurements. JSON has null instead. */
function withNumbers(event: RunEvent): RunEvent {
  if (event.type !== 'step') return event;
  return { ...event, agents: numbersIn(event.agents), policies: numbersIn(event.policies) };
}

function numbersIn<T>(value: T): T {
  if (value === null) return Number.NaN as T;
  if (typeof value !== 'object') return value;
  return Object.fromEntries(Object.entries(value).map(([key, inner]) => [key, numbersIn(inner)])) as T;
}
