/** A tokenizer.json at work: text to ids, and ids to text, as PyPI's `tokenizers` reads the file. */

import { Work } from '../work.js';
import { type AddedToken, addedTokensOf, TokenFinder } from './added-tokens.js';
import { decoderOf } from './decoders.js';
import { normalizerOf } from './normalizers.js';
import { type Part, partOf } from './part.js';
import { preTokenizerOf } from './pre-tokenizers.js';
import { vocabularyOf } from './vocabulary.js';

export interface Pipeline {
  /** The largest id, plus one. */
  readonly size: number;
  /** The tokens that are cut out of a text before it is split. */
  readonly added: readonly AddedToken[];
  /** Undefined stands for a part of the text that the vocabulary cannot represent. */
  encode(text: string): (number | undefined)[];
  decode(ids: readonly number[]): string;
  idOf(token: string): number | undefined;
  textOf(id: number): string | undefined;
}

type Settings = Readonly<Record<string, unknown>>;

/**
 * @param config The contents of tokenizer_config.json, which may add tokens
 * @throws Error naming what cannot be used
 */
export function pipelineOf(tokenizer: Settings, config: Settings): Pipeline {
  const optional = <T>(value: unknown, read: (part: Part) => T): T | undefined =>
    value === null || value === undefined ? undefined : read(partOf(value));
  const normalizer = optional(tokenizer.normalizer, normalizerOf);
  const cut = optional(tokenizer.pre_tokenizer, preTokenizerOf);
  const decode = optional(tokenizer.decoder, decoderOf);
  const vocabulary = vocabularyOf(tokenizer.model);
  const added = addedTokensOf(tokenizer.added_tokens, config.added_tokens_decoder, vocabulary.ids);

  const addedIds = new Map(added.map(({ content, id }) => [content, id]));
  const texts = new Map<number, string>();
  for (const [text, id] of vocabulary.ids) texts.set(id, text);
  for (const [id, text] of vocabulary.texts?.entries() ?? []) texts.set(id, text);
  for (const { content, id } of added) texts.set(id, content);
  let size = 0;
  for (const id of texts.keys()) size = Math.max(size, id + 1);

  const plain = new TokenFinder(
    added.flatMap((token) => (token.isNormalized ? [] : [[token.content, token] as const])),
  );
  const work = new Work(added.reduce((sum, { content }) => sum + content.length, 0));
  const changed = added.flatMap((token) =>
    token.isNormalized ? [[normalizer?.change(token.content, work) ?? token.content, token] as const] : [],
  );
  const empty = changed.find(([text]) => text === '')?.[1];
  if (empty !== undefined)
    throw new Error(`nothing of its added token ${JSON.stringify(empty.content)} is left when it is normalized`);
  // Of tokens that have one text when they are normalized, the original finds any: it keeps them in random order.
  const normalized = new TokenFinder(changed);
  /** The original decodes such a token to the text by which it is found. */
  const decoded = new Map(texts);
  for (const [text, { id }] of changed) decoded.set(id, text);

  const split = (text: string, isFirst: boolean, work: Work) =>
    (cut?.(text, isFirst, work) ?? [text]).flatMap((piece) => vocabulary.split(piece, work));

  return {
    size,
    added,
    encode(text) {
      const work = new Work(text.length);
      return plain.sections(text, work).flatMap((section, i) => {
        if (typeof section === 'number') return [section];
        const changed = normalizer?.change(section, work) ?? section;
        const begins = i === 0 && normalizer?.dropsStart(section, work) !== true;
        return normalized
          .sections(changed, work)
          .flatMap((each, j) => (typeof each === 'number' ? [each] : split(each, begins && j === 0, work)));
      });
    },
    decode(ids) {
      const tokens = ids.flatMap((id) => decoded.get(id) ?? []);
      const work = new Work(tokens.reduce((sum, token) => sum + token.length, 0));
      return decode === undefined ? tokens.join(' ') : decode(tokens, work).join('');
    },
    idOf: (token) => addedIds.get(token) ?? vocabulary.ids.get(token),
    textOf: (id) => texts.get(id),
  };
}
