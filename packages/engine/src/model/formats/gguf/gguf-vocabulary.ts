/** A tokenizer for llama.cpp: byte-level BPE, after special tokens were cut out of the text. */
import { isObject, TokenizerError } from '../../../errors.js';
import { BYTE_CHARACTERS } from '../../tokenizers/pipeline/part.js';
import { huggingFaceForm } from '../../tokenizers/tokenizer-json.js';
import type { HuggingFaceSpec, SymbolsSpec, TextTokenizerSpec } from '../../tokenizers/tokenizer-spec.js';
import type { GgufMetadata, GgufValue } from './gguf-file.js';
import { splitOf } from './gguf-splits.js';

/** llama.cpp's types of tokens. Control tokens are read where special tokens are, and not shown. */
export const KIND = { normal: 1, control: 3, userDefined: 4, unused: 5 } as const;

interface Token {
  readonly text: string;
  readonly kind: keyof typeof KIND;
}

interface Vocabulary {
  /** By id. */
  readonly tokens: readonly Token[];
  /** Pairs of tokens, from the first that are merged to the last, with a space between. */
  readonly merges: readonly string[];
  /** llama.cpp's name of the pattern that splits a text into words. */
  readonly split: string;
  readonly chatTemplate: string | undefined;
  readonly bos?: number | undefined;
  readonly pad?: number | undefined;
}

/**
 * @param stopTokens The ids that end a response, the most usual first
 * @param rows The number of rows of the embedding, at least the vocabulary's
 * @throws TokenizerError naming the feature that a GGUF file cannot express
 */
export function vocabularyMetadata(spec: TextTokenizerSpec, stopTokens: readonly number[], rows: number): GgufMetadata {
  const { tokens, merges, split, chatTemplate, bos, pad } = vocabularyOf(spec);
  const texts = tokens.slice(0, rows).map(({ text }) => text);
  const known = new Set<string>();
  const twice = texts.find((text) => known.has(text) || !known.add(text));
  if (twice !== undefined)
    throw new TokenizerError(`a GGUF file cannot tell two tokens apart that it writes ${JSON.stringify(twice)}`);
  for (let id = texts.length; id < rows; id++) texts.push(`[PAD${id}]`);
  const kinds = texts.map((_, id) => KIND[tokens[id]?.kind ?? 'unused']);
  const [eos, eot, eom] = stopTokens;
  const ids = { bos, eos, eot, eom, padding: pad };
  return {
    'tokenizer.ggml.model': { type: 'string', value: 'gpt2' },
    'tokenizer.ggml.pre': { type: 'string', value: split },
    'tokenizer.ggml.tokens': { type: 'strings', value: texts },
    'tokenizer.ggml.token_type': { type: 'int32s', value: kinds },
    'tokenizer.ggml.merges': { type: 'strings', value: merges },
    'tokenizer.ggml.add_bos_token': { type: 'bool', value: false }, // chat templates write it
    ...Object.fromEntries(
      Object.entries(ids).flatMap(([name, id]): [string, GgufValue][] =>
        id === undefined ? [] : [[`tokenizer.ggml.${name}_token_id`, { type: 'uint32', value: id }]],
      ),
    ),
    ...(chatTemplate !== undefined && { 'tokenizer.chat_template': { type: 'string', value: chatTemplate } }),
  };
}

function vocabularyOf(spec: TextTokenizerSpec): Vocabulary {
  if (spec.type === 'symbols') return symbolsVocabulary(spec);
  return byteLevelVocabulary(spec.type === 'bytes' ? huggingFaceForm(spec) : spec);
}

/** Symbols of one byte are that byte, longer ones are cut out of a text first, the longest first. */
function symbolsVocabulary(spec: SymbolsSpec): Vocabulary {
  const utf8 = new TextEncoder();
  const tokens = spec.symbols.map((text): Token => {
    const [byte = 0, ...more] = utf8.encode(text);
    if (more.length === 0) return { text: BYTE_CHARACTERS[byte] ?? '', kind: 'normal' };
    return { text, kind: text === spec.stop ? 'control' : 'userDefined' };
  });
  requireApart(tokens.flatMap(({ text, kind }) => (kind === 'normal' ? [] : text)));
  const { config } = huggingFaceForm(spec);
  return { tokens, merges: [], split: 'gpt-2', chatTemplate: templateOf(config.chat_template) };
}

/**
 * Symbols that overlap come out otherwise when the longest are cut out first than from left to right. Where no symbol
 * ends as another begins, occurrences in a text lie inside one another or apart, and both ways take the outer ones.
 */
function requireApart(symbols: readonly string[]): void {
  const beginnings = new Map<string, string>();
  for (const symbol of symbols)
    for (let length = 1; length < symbol.length; length++) beginnings.set(symbol.slice(0, length), symbol);
  for (const symbol of symbols) {
    for (let at = 1; at < symbol.length; at++) {
      const other = beginnings.get(symbol.slice(at));
      if (other === undefined) continue;
      const [first, second] = [JSON.stringify(symbol), JSON.stringify(other)];
      throw new TokenizerError(`a GGUF file cannot express the symbols: ${first} ends as ${second} begins`);
    }
  }
}

function byteLevelVocabulary({ tokenizer, config, chatTemplate }: HuggingFaceSpec): Vocabulary {
  const { model, normalizer, pre_tokenizer: splitter, added_tokens: added = [] } = tokenizer;
  if (!isObject(model) || model.type !== 'BPE' || model.byte_fallback === true || !isObject(model.vocab))
    throw cannot(`its model is ${isObject(model) ? model.type : 'none'}, expected byte-level BPE`);
  if (isObject(normalizer) && normalizer.type !== 'NFC') throw cannot(`it normalises texts by ${normalizer.type}`);
  const split = splitOf(splitter);
  if (split === undefined) throw cannot('the pattern by which it splits texts is none that llama.cpp has');
  const tokens: Token[] = [];
  for (const [text, id] of Object.entries(model.vocab)) tokens[Number(id)] = { text, kind: 'normal' };
  for (const { id, content, special } of Array.isArray(added) ? added : [])
    tokens[Number(id)] = { text: String(content), kind: special === true ? 'control' : 'userDefined' };
  const merges = (Array.isArray(model.merges) ? model.merges : []).map((pair: unknown) =>
    Array.isArray(pair) ? pair.join(' ') : String(pair),
  );
  const idOf = (value: unknown) => {
    const content = isObject(value) ? value.content : value;
    const id = typeof content === 'string' ? tokens.findIndex((token) => token?.text === content) : -1;
    return id < 0 ? undefined : id;
  };
  const whole = Array.from(tokens, (token, id): Token => token ?? { text: `[PAD${id}]`, kind: 'unused' });
  return {
    tokens: whole,
    merges,
    split,
    chatTemplate: chatTemplate ?? templateOf(config.chat_template),
    bos: idOf(config.bos_token),
    pad: idOf(config.pad_token),
  };
}

const cannot = (why: string) => new TokenizerError(`a GGUF file cannot express the tokenizer: ${why}`);

/** The only template, or the one named `default`. */
function templateOf(value: unknown): string | undefined {
  if (typeof value === 'string') return value;
  const named: unknown = Array.isArray(value) ? value.find((each) => isObject(each) && each.name === 'default') : {};
  return isObject(named) && typeof named.template === 'string' ? named.template : undefined;
}
