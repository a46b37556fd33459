import { TokenizerError } from '../../errors.js';
import type { Tokenizer } from '../../nouns.js';
import type { ChoicesSpec } from './tokenizer-spec.js';

/**
 * The tokenizer of a table of choices: every choice and every feature is one token, the choices first. Of a
 * conversation it reads the last message alone, which is the name of a feature; a table with a single feature without a
 * name reads no message. No token ends a response.
 * @throws TokenizerError when two of the names are the same
 */
export function choicesTokenizer({ choices, features }: Omit<ChoicesSpec, 'type'>): Tokenizer {
  const names = [...choices, ...features];
  const ids = new Map(names.map((name, id) => [name, id]));
  if (ids.size < names.length) throw new TokenizerError(`expected different names, got ${names.join(', ')}`);
  const idOf = (name: string, of: readonly string[]): number => {
    const id = ids.get(name);
    if (id !== undefined && of.includes(name)) return id;
    throw new TokenizerError(`a table of choices has no ${JSON.stringify(name)}; it has ${of.join(', ')}`);
  };
  return {
    vocabSize: names.length,
    stopTokens: [],
    toolFormat: undefined,
    encode: (text) => (text === '' ? [] : [idOf(text, names)]),
    decode: (tokens) => tokens.map((id) => names[id] ?? '').join(' '),
    chat: (messages) => [features[0] === '' ? choices.length : idOf(messages.at(-1)?.content ?? '', features)],
    toJSON: (): ChoicesSpec => ({ type: 'choices', choices, features }),
  };
}
