/** The pre-tokenizers of a tokenizer.json, which cut a text into pieces that the vocabulary then splits. */

import type { Work } from '../work.js';
import {
  bytesAsText,
  countOf,
  type Finder,
  finderOf,
  flagOf,
  type Part,
  partsOf,
  regexFinder,
  textOf,
  unknownPart,
} from './part.js';

/**
 * Cuts a piece of a text.
 * @param isFirst Whether the text begins with the piece, as it was before it was normalized
 */
export type Cut = (piece: string, isFirst: boolean, work: Work) => string[];

/** How a text is cut at matches, by the words of the file. */
const BEHAVIORS = ['Removed', 'Isolated', 'MergedWithPrevious', 'MergedWithNext', 'Contiguous'] as const;
type Behavior = (typeof BEHAVIORS)[number];

const SPACES = regexFinder('\\s');
/** Rust's own expressions count the two joiners to `\\w`. */
const WORDS = regexFinder('[\\w\u200c\u200d]+|[^\\w\\s\u200c\u200d]+');
/** Punctuation, to which the original counts all signs of ASCII. */
const PUNCTUATION = regexFinder('[\\p{P}!-/:-@\\[-`{-~]');
/** Rust's `char::is_numeric` is Unicode's general category N. */
const NUMERAL = regexFinder('\\p{N}');
/** The cut of GPT-2 (Radford et al. 2019). */
const GPT2 = regexFinder("'s|'t|'re|'ve|'m|'ll|'d| ?\\p{L}+| ?\\p{N}+| ?[^\\s\\p{L}\\p{N}]+|\\s+(?!\\S)|\\s+");

/** @throws Error naming what cannot be used */
export function preTokenizerOf(part: Part): Cut {
  switch (part.type) {
    case 'Sequence':
      return sequenceOf(partsOf(part, 'pretokenizers').map(preTokenizerOf));
    case 'Split':
      return cutAt(finderOf(part), behaviorOf(part), flagOf(part, 'invert', false));
    case 'ByteLevel':
      return byteLevelOf(part);
    case 'Metaspace':
      return metaspaceOf(part);
    case 'Digits':
      return cutAt(NUMERAL, flagOf(part, 'individual_digits', false) ? 'Isolated' : 'Contiguous');
    case 'Punctuation':
      return cutAt(PUNCTUATION, behaviorOf(part, 'Isolated'));
    case 'Whitespace':
      return cutAt(WORDS, 'Removed', true);
    case 'WhitespaceSplit':
      return cutAt(SPACES, 'Removed');
    case 'BertPreTokenizer':
      return sequenceOf([cutAt(SPACES, 'Removed'), cutAt(PUNCTUATION, 'Isolated')]);
    case 'CharDelimiterSplit': {
      return cutAt(finderOf({ ...part, pattern: { String: textOf(part, 'delimiter') } }), 'Removed');
    }
    case 'FixedLength': {
      const length = countOf(part, 'length', 1);
      return (piece, _isFirst, work) => chunks(piece, length, work);
    }
    default:
      throw unknownPart('pre-tokenizer', part);
  }
}

function behaviorOf(part: Part, otherwise?: Behavior): Behavior {
  const behavior = BEHAVIORS.find((each) => each === (part.behavior ?? otherwise));
  if (behavior === undefined) throw new Error(`${part.type}.behavior must be one of ${BEHAVIORS.join(', ')}`);
  return behavior;
}

function sequenceOf(cuts: readonly Cut[]): Cut {
  return (piece, isFirst, work) => {
    let pieces = [piece];
    for (const cut of cuts) pieces = pieces.flatMap((each, i) => cut(each, isFirst && i === 0, work));
    return pieces;
  };
}

function byteLevelOf(part: Part): Cut {
  const addsSpace = flagOf(part, 'add_prefix_space', true);
  const cut = flagOf(part, 'use_regex', true) ? cutAt(GPT2, 'Isolated') : undefined;
  return (piece, isFirst, work) => {
    const text = addsSpace && !piece.startsWith(' ') ? ` ${piece}` : piece;
    return (cut?.(text, isFirst, work) ?? [text]).map((each) => bytesAsText(each, work));
  };
}

function metaspaceOf(part: Part): Cut {
  const mark = textOf(part, 'replacement', '▁');
  if ([...mark].length !== 1) throw new Error('Metaspace.replacement must be one character');
  const scheme = part.prepend_scheme ?? (flagOf(part, 'add_prefix_space', true) ? 'always' : 'never');
  if (scheme !== 'always' && scheme !== 'first' && scheme !== 'never')
    throw new Error('Metaspace.prepend_scheme must be always, first or never');
  const isCut = flagOf(part, 'split', true);
  const cut = cutAt(finderOf({ ...part, pattern: { String: mark } }), 'MergedWithNext');
  return (piece, isFirst, work) => {
    const marked = piece.replaceAll(' ', mark);
    const isPrepended = (scheme === 'always' || (scheme === 'first' && isFirst)) && !marked.startsWith(mark);
    const text = isPrepended ? mark + marked : marked;
    work.text(text.length);
    return isCut ? cut(text, isFirst, work) : [text];
  };
}

function chunks(piece: string, length: number, work: Work): string[] {
  work.spend(piece.length);
  const characters = Array.from(piece);
  const all: string[] = [];
  for (let i = 0; i < characters.length; i += length) all.push(characters.slice(i, i + length).join(''));
  return all;
}

/** Cuts at the matches of a finder, or at what lies between them (`isInverted`). */
function cutAt(find: Finder, behavior: Behavior, isInverted = false): Cut {
  return (piece, _isFirst, work) => {
    const parts: { text: string; isCut: boolean }[] = [];
    // A match of no characters parts those beside it.
    const add = (start: number, end: number, isMatch: boolean) => {
      if (isMatch || end > start) parts.push({ text: piece.slice(start, end), isCut: isMatch !== isInverted });
    };
    let from = 0;
    for (const [start, end] of find(piece, work)) {
      add(from, start, false);
      add(start, end, true);
      from = end;
    }
    add(from, piece.length, false);
    return joined(parts, behavior);
  };
}

function joined(parts: readonly { readonly text: string; readonly isCut: boolean }[], behavior: Behavior): string[] {
  const pieces: string[] = [];
  parts.forEach(({ text, isCut }, i) => {
    const before = parts[i - 1]?.isCut;
    const joins =
      (behavior === 'Contiguous' && before === isCut) ||
      (behavior === 'MergedWithPrevious' && isCut && before === false) ||
      (behavior === 'MergedWithNext' && !isCut && before === true);
    if (behavior === 'Removed' && isCut) return;
    if (joins) pieces.push((pieces.pop() ?? '') + text);
    else pieces.push(text);
  });
  return pieces.filter((piece) => piece !== '');
}
