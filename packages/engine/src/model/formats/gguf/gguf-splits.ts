/** llama.cpp's names of the ways to split a text into words before byte-level BPE, for both directions. */
import { isObject } from '../../../errors.js';

/** How a tokenizer treats a text before and beside its merges, in the form of a tokenizer.json. */
export interface Splitter {
  readonly normalizer: unknown;
  readonly pre_tokenizer: unknown;
  /** A word that is a token is taken whole, even if no merges lead to it. */
  readonly ignoreMerges: boolean;
}

const CONTRACTIONS = "(?i:'s|'t|'re|'ve|'m|'ll|'d)";
const BEHIND = ' ?[^\\s\\p{L}\\p{N}]+[\\r\\n]*|\\s*[\\r\\n]+|\\s+(?!\\S)|\\s+';
const LLAMA = `${CONTRACTIONS}|[^\\r\\n\\p{L}\\p{N}]?\\p{L}+|\\p{N}{1,3}|${BEHIND}`;
const QWEN = `${CONTRACTIONS}|[^\\r\\n\\p{L}\\p{N}]?\\p{L}+|\\p{N}|${BEHIND}`;

const byteLevel = (use_regex: boolean) => ({
  type: 'ByteLevel',
  add_prefix_space: false,
  trim_offsets: true,
  use_regex,
});

const byPattern = (Regex: string) => ({
  type: 'Sequence',
  pretokenizers: [{ type: 'Split', pattern: { Regex }, behavior: 'Isolated', invert: false }, byteLevel(false)],
});

const digitsApart = {
  type: 'Sequence',
  pretokenizers: [{ type: 'Digits', individual_digits: true }, byteLevel(true)],
};

const llama: Splitter = { normalizer: null, pre_tokenizer: byPattern(LLAMA), ignoreMerges: true };
const qwen: Splitter = { normalizer: { type: 'NFC' }, pre_tokenizer: byPattern(QWEN), ignoreMerges: false };

const gpt2: Splitter = { normalizer: null, pre_tokenizer: byteLevel(true), ignoreMerges: false };

const SPLITTERS: ReadonlyMap<string, Splitter> = new Map([
  ['gpt-2', gpt2],
  ['mellum', gpt2],
  ['a.x-4.0', gpt2],
  ['smollm', { normalizer: null, pre_tokenizer: digitsApart, ignoreMerges: false }],
  ['llama-bpe', llama],
  ['llama3', llama],
  ['llama-v3', llama],
  ['smaug-bpe', llama], // Llama 3's vocabulary without a token at the beginning, as SmolLM3 has it
  ['falcon3', llama],
  ['pixtral', llama],
  ['midm-2.0', llama],
  ['qwen2', qwen],
  ['deepseek-r1-qwen', qwen],
]);

export const splitNames = [...SPLITTERS.keys()];

export const splitterNamed = (name: string): Splitter | undefined => SPLITTERS.get(name);

/** llama.cpp's name of a pre-tokenizer in a tokenizer.json; undefined if it has none. */
export function splitOf(splitter: unknown): string | undefined {
  if (!isObject(splitter)) return undefined;
  if (splitter.type === 'ByteLevel') return splitter.add_prefix_space === true ? undefined : 'gpt-2';
  const [first, bytes, ...more] = Array.isArray(splitter.pretokenizers) ? splitter.pretokenizers : [];
  const isByteLevel = bytes?.type === 'ByteLevel' && !bytes.add_prefix_space;
  if (!isByteLevel || more.length > 0) return undefined;
  if (first?.type === 'Digits') return first.individual_digits && bytes.use_regex !== false ? 'smollm' : undefined;
  const isSplit = first?.type === 'Split' && first.behavior === 'Isolated' && first.invert === false;
  if (!isSplit || bytes.use_regex !== false) return undefined;
  const pattern: unknown = first.pattern?.Regex;
  return pattern === LLAMA ? 'llama-bpe' : pattern === QWEN ? 'qwen2' : undefined;
}
