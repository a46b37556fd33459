import { TokenizerError } from '../../errors.js';
import type { Tokenizer } from '../../nouns.js';
import { plainCalls } from '../tool-formats/plain-messages.js';
import type { SymbolsSpec } from './tokenizer-spec.js';

/** The character for an id without text. */
export const REPLACEMENT = '\ufffd';

/**
 * The tokenizer of a fixed vocabulary of strings; it cuts text greedily into the longest symbols. A conversation is the
 * messages' contents one after another, a user's closed by `endOfUser`, an assistant's by `endOfAssistant`, without a
 * header where the model writes. Calls of tools and results are plain text; the list of tools is left out.
 * @throws TokenizerError when a symbol comes twice or a named one is not in the vocabulary
 */
export function symbolsTokenizer(spec: SymbolsSpec): Tokenizer {
  const { symbols } = spec;
  const ids = new Map(symbols.map((symbol, id) => [symbol, id]));
  if (ids.size < symbols.length) {
    const twice = symbols.find((symbol, id) => ids.get(symbol) !== id);
    throw new TokenizerError(`symbol ${JSON.stringify(twice)} comes twice in the vocabulary`);
  }
  const idOf = (role: 'stop' | 'endOfUser' | 'endOfAssistant'): number => {
    const id = ids.get(spec[role]);
    if (id === undefined) {
      throw new TokenizerError(`${role} ${JSON.stringify(spec[role])} is not one of the ${symbols.length} symbols`);
    }
    return id;
  };
  const stop = idOf('stop');
  const closing = { system: [], user: [idOf('endOfUser')], assistant: [idOf('endOfAssistant')] };
  const candidates = longestFirst(symbols);

  const encode = (text: string): number[] => {
    const tokens: number[] = [];
    let at = 0;
    while (at < text.length) {
      const symbol = candidates.get(text.charAt(at))?.find((candidate) => text.startsWith(candidate, at));
      const id = symbol === undefined ? undefined : ids.get(symbol);
      if (symbol === undefined || id === undefined) {
        const character = String.fromCodePoint(text.codePointAt(at) ?? 0);
        throw new TokenizerError(
          `no symbol for ${JSON.stringify(character)} at position ${at} of ${JSON.stringify(surroundings(text, at))}`,
        );
      }
      tokens.push(id);
      at += symbol.length;
    }
    return tokens;
  };

  return {
    vocabSize: symbols.length,
    stopTokens: [stop],
    toolFormat: 'plain',
    encode,
    decode: (tokens) => tokens.map((id) => symbols[id] ?? REPLACEMENT).join(''),
    // The tools are not listed: a vocabulary has words for its own task alone.
    chat: (messages, exact, tools) =>
      plainCalls(messages, tools).flatMap(({ role, content, message }) => [
        ...[...(exact?.(message) ?? encode(content)), ...closing[role]],
      ]),
    toJSON: () => spec,
  };
}

/** The symbols grouped by their first character, longest first. */
function longestFirst(symbols: readonly string[]): Map<string, string[]> {
  const byStart = new Map<string, string[]>();
  for (const symbol of symbols) {
    const start = symbol.charAt(0);
    const group = byStart.get(start);
    if (group === undefined) byStart.set(start, [symbol]);
    else group.push(symbol);
  }
  for (const group of byStart.values()) group.sort((a, b) => b.length - a.length);
  return byStart;
}

const SHOWN = 60;

function surroundings(text: string, at: number): string {
  const start = Math.max(0, at - SHOWN / 2);
  return `${start > 0 ? '…' : ''}${text.slice(start, start + SHOWN)}${start + SHOWN < text.length ? '…' : ''}`;
}
