/** The settings and patterns that the parts of a tokenizer.json have in common. */
import { isObject } from '../../../errors.js';
import { type Match, Pattern } from '../pattern/pattern.js';
import type { Work } from '../work.js';

export type Part = Readonly<Record<string, unknown>> & { readonly type: string };

/** @throws Error when it is no object with a `type` */
export function partOf(value: unknown): Part {
  if (!isObject(value) || typeof value.type !== 'string') throw new Error('a part has no type');
  return { ...value, type: value.type };
}

export const unknownPart = (kind: string, { type }: Part): Error => new Error(`the ${kind} ${type} is not supported`);

/** @throws Error naming the setting if it is no text, and if it is missing without a default */
export function textOf(part: Part, key: string, otherwise?: string): string {
  const value = part[key] ?? otherwise;
  if (typeof value === 'string') return value;
  throw new Error(`${part.type}.${key} must be a text`);
}

export function flagOf(part: Part, key: string, otherwise: boolean): boolean {
  const value = part[key] ?? otherwise;
  if (typeof value === 'boolean') return value;
  throw new Error(`${part.type}.${key} must be true or false`);
}

/** @throws Error naming the setting if it is not a whole number of at least `least` */
export function countOf(part: Part, key: string, least: number, otherwise?: number): number {
  const value = part[key] ?? otherwise;
  if (typeof value === 'number' && Number.isInteger(value) && value >= least) return value;
  throw new Error(`${part.type}.${key} must be a whole number of at least ${least}`);
}

/** @throws Error when it is no list of parts */
export function partsOf(part: Part, key: string): Part[] {
  const value = part[key];
  if (!Array.isArray(value)) throw new Error(`${part.type}.${key} must be a list`);
  return value.map(partOf);
}

/** Finds the matches in a text from left to right. */
export type Finder = (text: string, work: Work) => Iterable<Match>;

/** Characters of the longest pattern that is read. Real ones have some 500. */
const LONGEST_PATTERN = 2000;

/** The finder of a setting `pattern`: a text to be found as it is, or a regular expression. */
export function finderOf(part: Part): Finder {
  const { pattern } = part;
  const [kind, source] = isObject(pattern) ? (Object.entries(pattern)[0] ?? []) : [];
  if (typeof source !== 'string' || (kind !== 'String' && kind !== 'Regex'))
    throw new Error(`${part.type}.pattern must have a String or a Regex`);
  if (source.length > LONGEST_PATTERN)
    throw new Error(`a pattern has ${source.length} characters, at most ${LONGEST_PATTERN} are read`);
  return kind === 'Regex' ? regexFinder(source) : (text, work) => literalMatches(source, text, work);
}

export function regexFinder(source: string): Finder {
  const pattern = new Pattern(source);
  return (text, work) => pattern.matches(text, work);
}

function* literalMatches(literal: string, text: string, work: Work): Generator<Match> {
  work.spend(text.length + literal.length);
  if (literal === '') return;
  for (let at = text.indexOf(literal); at >= 0; at = text.indexOf(literal, at + literal.length))
    yield [at, at + literal.length];
}

export function replaced(text: string, find: Finder, content: string, work: Work): string {
  const pieces: string[] = [];
  let from = 0;
  let length = text.length;
  for (const [start, end] of find(text, work)) {
    length += content.length - (end - start);
    work.allow(length);
    work.spend(content.length + 1);
    pieces.push(text.slice(from, start), content);
    from = end;
  }
  return pieces.length === 0 ? text : pieces.join('') + text.slice(from);
}

/** The characters by which byte-level vocabularies write the 256 bytes (GPT-2, Radford et al. 2019), by byte. */
export const BYTE_CHARACTERS: readonly string[] = byteCharacters();

/** Printable characters of Latin-1 stand for themselves, the other bytes for those from U+0100 on. */
function byteCharacters(): string[] {
  let others = 0;
  return Array.from({ length: 256 }, (_, byte) => {
    const isPrintable = (byte > 0x20 && byte < 0x7f) || (byte > 0xa0 && byte !== 0xad);
    return String.fromCharCode(isPrintable ? byte : 256 + others++);
  });
}

const encoder = new TextEncoder();

/** The bytes of a text in UTF-8, as byte-level vocabularies write them. */
export function bytesAsText(text: string, work: Work): string {
  const bytes = encoder.encode(text);
  work.text(bytes.length);
  let written = '';
  for (const byte of bytes) written += BYTE_CHARACTERS[byte];
  return written;
}
