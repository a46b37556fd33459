/** The decoders of a tokenizer.json, which make a text of tokens. */

import type { Work } from '../work.js';
import {
  BYTE_CHARACTERS,
  countOf,
  finderOf,
  flagOf,
  type Part,
  partsOf,
  replaced,
  textOf,
  unknownPart,
} from './part.js';

/** Changes the texts of tokens, which are then joined. */
export type Decode = (tokens: readonly string[], work: Work) => readonly string[];

/** @throws Error naming what cannot be used */
export function decoderOf(part: Part): Decode {
  switch (part.type) {
    case 'Sequence': {
      const all = partsOf(part, 'decoders').map(decoderOf);
      return (tokens, work) => all.reduce<readonly string[]>((changed, decode) => decode(changed, work), tokens);
    }
    case 'ByteLevel':
      return (tokens) => [textOfBytes(tokens)];
    case 'ByteFallback':
      return byteFallback;
    case 'Fuse':
      return (tokens) => [tokens.join('')];
    case 'Replace': {
      const find = finderOf(part);
      const content = textOf(part, 'content');
      return (tokens, work) => tokens.map((token) => replaced(token, find, content, work));
    }
    case 'Strip': {
      const content = textOf(part, 'content');
      const [start, stop] = [countOf(part, 'start', 0), countOf(part, 'stop', 0)];
      return (tokens) => tokens.map((token) => withoutEnds(token, content, start, stop));
    }
    case 'Metaspace':
      return metaspaceOf(part);
    case 'WordPiece':
      return wordPieceOf(part);
    case 'BPEDecoder': {
      const suffix = textOf(part, 'suffix', '</w>');
      if (suffix === '') throw new Error('BPEDecoder.suffix must not be empty');
      const find = finderOf({ ...part, pattern: { String: suffix } });
      return (tokens, work) =>
        tokens.map((token, i) => replaced(token, find, i === tokens.length - 1 ? '' : ' ', work));
    }
    default:
      throw unknownPart('decoder', part);
  }
}

const BYTES = new Map(BYTE_CHARACTERS.map((character, byte) => [character, byte]));
const encoder = new TextEncoder();
/** A leading byte order mark is text. One decoder each for all tokens: V8 collects such objects late. */
const utf8 = new TextDecoder('utf-8', { ignoreBOM: true });
const strictUtf8 = new TextDecoder('utf-8', { ignoreBOM: true, fatal: true });

/** A token that is not written in bytes stands for itself. */
function textOfBytes(tokens: readonly string[]): string {
  const bytes = tokens.flatMap((token) => {
    const own = Array.from(token, (character) => BYTES.get(character));
    return own.every((byte) => byte !== undefined) ? own : [...encoder.encode(token)];
  });
  return utf8.decode(Uint8Array.from(bytes));
}

/** Tokens such as `<0xE4>` become characters, or one replacement character each if their bytes are none. */
function byteFallback(tokens: readonly string[]): string[] {
  const texts: string[] = [];
  let bytes: number[] = [];
  const flush = () => {
    const text = strictText(bytes);
    if (text === undefined) texts.push(...bytes.map(() => '\ufffd'));
    else if (bytes.length > 0) texts.push(text);
    bytes = [];
  };
  for (const token of tokens) {
    const digits = /^<0x([0-9A-Fa-f]{2})>$/.exec(token)?.[1];
    if (digits !== undefined) {
      bytes.push(Number.parseInt(digits, 16));
    } else {
      flush();
      texts.push(token);
    }
  }
  flush();
  return texts;
}

function strictText(bytes: readonly number[]): string | undefined {
  try {
    return strictUtf8.decode(Uint8Array.from(bytes));
  } catch {
    return undefined;
  }
}

function withoutEnds(token: string, content: string, start: number, stop: number): string {
  const characters = Array.from(token);
  let from = 0;
  while (from < start && characters[from] === content) from++;
  let to = characters.length;
  while (characters.length - to < stop && characters[to - 1] === content) to--;
  return characters.slice(from, Math.max(from, to)).join('');
}

function metaspaceOf(part: Part): Decode {
  const mark = textOf(part, 'replacement', '▁');
  const prepends = part.prepend_scheme !== 'never' && flagOf(part, 'add_prefix_space', true);
  return (tokens) => tokens.map((token, i) => token.replaceAll(mark, i === 0 && prepends ? '' : ' '));
}

function wordPieceOf(part: Part): Decode {
  const prefix = textOf(part, 'prefix', '##');
  const isCleaned = flagOf(part, 'cleanup', true);
  return (tokens) =>
    tokens.map((token, i) => {
      const text = i === 0 ? token : token.startsWith(prefix) ? token.slice(prefix.length) : ` ${token}`;
      return isCleaned ? cleaned(text) : text;
    });
}

const CLEANED = [' .', ' ?', ' !', ' ,', " ' ", " n't", " 'm", " 's", " 've", " 're"] as const;

const cleaned = (text: string) =>
  CLEANED.reduce((changed, each) => changed.replaceAll(each, each.trim()), text).replaceAll(' do not', " don't");
