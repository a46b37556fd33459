/** Values as JSON in which every long text stands once: siblings share prompts, and agents repeat one another. */

/** A shorter text is not worth a place of its own. */
const SHORTEST = 24;
/** The beginning of a text that stands for the place of another. */
const PLACE = '\u0001';

/** Texts, each once, with the bytes that they take. */
export class TextPool {
  readonly texts: string[] = [];
  readonly #places = new Map<string, number>();
  /** The bytes that the page will take for what was packed so far, about. */
  bytes = 0;

  /** A value as JSON without its long texts. */
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

/** The value that was packed. */
export function unpack(json: string, texts: readonly string[]): unknown {
  return JSON.parse(json, (_, inner: unknown) =>
    typeof inner === 'string' && inner.startsWith(PLACE) ? (texts[Number(inner.slice(PLACE.length))] ?? '') : inner,
  );
}
