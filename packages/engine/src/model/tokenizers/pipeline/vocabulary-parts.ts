/** The rules that the vocabularies of a tokenizer.json have in common. */
import { isObject } from '../../../errors.js';
import type { Work } from '../work.js';

export interface Vocabulary {
  readonly ids: ReadonlyMap<string, number>;
  /** The text of each id, if two ids may have the same. */
  readonly texts?: readonly string[];
  /** The ids of a piece's tokens. Undefined: the vocabulary has no token for a part of it. */
  split(piece: string, work: Work): readonly (number | undefined)[];
}

export type Settings = Readonly<Record<string, unknown>>;

/** @throws Error when a vocabulary is no object */
export function vocabularyIds(vocab: unknown): Map<string, number> {
  if (!isObject(vocab)) throw new Error('its vocab must be an object');
  return new Map(Object.entries(vocab as Readonly<Record<string, number>>));
}

/** A setting that is a text; empty if it is absent. @throws Error naming it if it is no text */
export function textSetting(settings: Settings, key: string): string {
  const value = settings[key] ?? '';
  if (typeof value === 'string') return value;
  throw new Error(`its ${key} must be a text`);
}

const encoder = new TextEncoder();

/** The ids of the tokens of a text's bytes, `<0xE4>`. Undefined if one is missing. */
export function bytesOf(text: string, ids: ReadonlyMap<string, number>): number[] | undefined {
  const found: number[] = [];
  for (const byte of encoder.encode(text)) {
    const id = ids.get(`<0x${byte.toString(16).toUpperCase().padStart(2, '0')}>`);
    if (id === undefined) return undefined;
    found.push(id);
  }
  return found;
}
