/** Signs that a tracer cut off long texts: nothing in a trace says so. */
import { isObject } from '@drmas/engine/errors';
import { whyUnread } from './messages.js';
import type { TraceSpan } from './span-fields.js';

/** Limits that people set: hundreds, thousands, and powers of two. */
const isRound = (length: number) => length >= 32 && (length % 100 === 0 || (length & (length - 1)) === 0);

/**
 * The length at which a tracer cut texts off, found in all spans of an import. It is the length of the longest
 * attribute if one of this length is JSON without its end, or if different ones have this length and it is round.
 */
export class TextLimit {
  #longest = 0;
  #text = '';
  #isCut = false;

  see({ attributes, events = [] }: Pick<TraceSpan, 'attributes' | 'events'>): void {
    for (const fields of [attributes, ...events.map((event) => event.attributes)])
      for (const value of isObject(fields) ? Object.values(fields) : [])
        if (typeof value === 'string' && value.length >= this.#longest) this.#add(value);
  }

  /** Undefined if nothing shows that texts were cut off. */
  get length(): number | undefined {
    return this.#isCut ? this.#longest : undefined;
  }

  #add(text: string): void {
    if (text.length > this.#longest) {
      [this.#longest, this.#text] = [text.length, text];
      this.#isCut = whyUnread(text) === 'cut';
    } else this.#isCut ||= (text !== this.#text && isRound(text.length)) || whyUnread(text) === 'cut';
  }
}
