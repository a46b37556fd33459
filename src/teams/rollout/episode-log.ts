import { ArgumentError, isSmall } from '@drmas/engine/errors';
import { mean } from '@drmas/engine/math';
import type { LogEntry } from '@drmas/engine/nouns';

/** More entries than these are a mistake: a loop that logs. */
const MOST_ENTRIES = 1_000;
const LONGEST_NAME = 100;

export class EpisodeLog {
  readonly #entries: LogEntry[] = [];
  readonly #longest: number;

  /** @param longest the most characters of an entry, as JSON */
  constructor(longest: number) {
    this.#longest = longest;
  }

  /**
   * Keeps a copy of a value. @throws ArgumentError for a name that is not text, a number that is not finite, a value
   * that is too large, and too many values
   */
  add(name: string, value: unknown): void {
    if (typeof name !== 'string' || name === '' || name.length > LONGEST_NAME)
      throw new ArgumentError(`log: expected a name of 1 to ${LONGEST_NAME} characters, got ${String(name)}`);
    if (typeof value === 'number' && !Number.isFinite(value))
      throw new ArgumentError(`log: '${name}' is ${value}, expected a finite number`);
    if (!isSmall(value, this.#longest))
      throw new ArgumentError(`log: '${name}' is larger than training.maxOutcomeBytes, ${this.#longest}`);
    if (this.#entries.length === MOST_ENTRIES)
      throw new ArgumentError(`log: expected at most ${MOST_ENTRIES} values an episode; '${name}' is one more`);
    this.#entries.push({ name, value: copyOf(value) });
  }

  get entries(): readonly LogEntry[] | undefined {
    return this.#entries.length === 0 ? undefined : this.#entries;
  }

  /** The mean of each name's numbers (`true` counts 1); undefined if no number was kept. */
  get metrics(): Record<string, number> | undefined {
    const numbers = new Map<string, number[]>();
    for (const { name, value } of this.#entries)
      if (typeof value === 'number' || typeof value === 'boolean')
        numbers.set(name, [...(numbers.get(name) ?? []), Number(value)]);
    return numbers.size === 0 ? undefined : Object.fromEntries(Array.from(numbers, ([name, all]) => [name, mean(all)]));
  }
}

/**
 * A copy, because the team may change its object later. If copying fails, its text. A thread can send every copy, so a
 * function and a symbol are kept as the text that an episode file has for them.
 */
function copyOf(value: unknown): unknown {
  try {
    return typeof value === 'function' || typeof value === 'symbol' ? String(value) : structuredClone(value);
  } catch {
    return Object.prototype.toString.call(value);
  }
}
