import type { RunEvent } from '@drmas/engine/events';
import type { FeedMessages } from './feed.js';

/** Values as JSON that contains each long text once, because siblings share prompts and agents repeat one another. */

/** A shorter text is not replaced. */
const SHORTEST = 24;
/** The prefix of a text that refers to a stored text. */
const PLACE = '\u0001';

/** A list of different texts, and their size in bytes. */
export class TextPool {
  readonly texts: string[] = [];
  readonly #places = new Map<string, number>();
  /** The approximate number of bytes of the packed values so far. */
  bytes = 0;

  pack(value: unknown): string {
    const json = JSON.stringify(value, (_, inner: unknown) =>
      typeof inner === 'string' && (inner.length >= SHORTEST || inner.startsWith(PLACE)) ? this.#placeOf(inner) : inner,
    );
    this.bytes += json.length;
    return json;
  }

  #placeOf(text: string): string {
    const place = this.#places.get(text) ?? this.texts.length;
    if (place === this.texts.length) {
      this.#places.set(text, place);
      this.texts.push(text);
      this.bytes += text.length;
    }
    return `${PLACE}${place}`;
  }
}

export function unpack(json: string, texts: readonly string[]): unknown {
  return JSON.parse(json, (_, inner: unknown) =>
    typeof inner === 'string' && inner.startsWith(PLACE) ? (texts[Number(inner.slice(PLACE.length))] ?? '') : inner,
  );
}

// The data inside a report's page, which needs no server.

export const EMBEDDED_ID = 'report-data';

export interface EmbeddedRun extends Omit<FeedMessages['run'], 'name'> {
  readonly events: readonly RunEvent[];
  /** Files with their groups. Each is packed with the report's texts. */
  readonly files: readonly { readonly name: string; readonly size: number; readonly groups: readonly string[] }[];
  /** The number of the run's episodes in the report, and on disk. */
  readonly shown: number;
  readonly kept: number;
}

export interface EmbeddedReport extends Pick<FeedMessages['list'], 'folder' | 'ablations'> {
  readonly runs: readonly EmbeddedRun[];
  readonly texts: readonly string[];
}
