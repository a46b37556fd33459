/** The vocabulary of a tokenizer.json, which splits pieces of a text into tokens. */
import { isObject } from '../../../../base/errors.js';
import type { Work } from '../work.js';
import { BPE, type LibraryModel, Unigram, WordPiece } from './library.js';

export interface Vocabulary {
  /** The id of each token. */
  readonly ids: ReadonlyMap<string, number>;
  /** The ids of a piece's tokens. Undefined: the vocabulary has no token for a part of it. */
  split(piece: string, work: Work): readonly (number | undefined)[];
}

type Settings = Readonly<Record<string, unknown>>;

/** @param settings The `model` of a tokenizer.json. @throws Error naming what cannot be used */
export function vocabularyOf(settings: unknown): Vocabulary {
  if (!isObject(settings)) throw new Error('it has no model');
  const { vocab } = settings;
  if (!isObject(vocab) && !Array.isArray(vocab)) throw new Error('its model has no vocab');
  const type = settings.type ?? legacyType(settings);
  switch (type) {
    case 'BPE':
      return bytePairs(settings);
    case 'WordPiece': {
      const { max_input_chars_per_word: most } = settings;
      const longest = typeof most === 'number' ? most : 100;
      // The library compares each part of a piece with the vocabulary.
      return libraryVocabulary(new WordPiece(settings), (length) => (length > longest ? 1 : length * length));
    }
    case 'Unigram': {
      const longest = longestOf(vocab);
      return libraryVocabulary(new Unigram(settings, ''), (length) => length * longest * longest);
    }
    case 'WordLevel':
      return wordLevel(vocab, settings.unk_token);
    default:
      throw new Error(`the model ${String(type)} is not supported`);
  }
}

/** Older files do not name the kind of their model. */
function legacyType({ merges, continuing_subword_prefix: prefix, vocab }: Settings): string {
  if (Array.isArray(vocab)) return 'Unigram';
  if (merges !== undefined) return 'BPE';
  return prefix === undefined ? 'WordLevel' : 'WordPiece';
}

function longestOf(vocab: unknown): number {
  const entries: unknown[] = Array.isArray(vocab) ? vocab : [];
  return entries.reduce<number>((longest, entry) => {
    const text: unknown = Array.isArray(entry) ? entry[0] : undefined;
    return typeof text === 'string' ? Math.max(longest, text.length) : longest;
  }, 0);
}

/**
 * Byte-pair encoding. The original leaves characters out that the vocabulary cannot represent, and then merges; the
 * library merges first.
 */
function bytePairs(settings: Settings): Vocabulary {
  const { ids, split } = libraryVocabulary(new BPE(settings), (length) => length);
  if (settings.unk_token != null || settings.byte_fallback === true) return { ids, split };
  const isWhole = (piece: string) => settings.ignore_merges === true && ids.has(piece);
  return {
    ids,
    split(piece, work) {
      const known = isWhole(piece)
        ? piece
        : Array.from(piece, (character) => (ids.has(character) ? character : '')).join('');
      return split(known, work);
    },
  };
}

/** @param cost The work that a piece of a length takes */
function libraryVocabulary(model: LibraryModel, cost: (length: number) => number): Vocabulary {
  const { tokens_to_ids: ids, unk_token_id: unknown } = model;
  return {
    ids,
    split(piece, work) {
      work.spend(cost(piece.length));
      return model._call([piece]).map((token) => ids.get(token) ?? unknown);
    },
  };
}

function wordLevel(vocab: Settings | unknown[], unknown: unknown): Vocabulary {
  const ids = new Map(Object.entries(vocab as Readonly<Record<string, number>>));
  const unknownId = typeof unknown === 'string' ? ids.get(unknown) : undefined;
  return { ids, split: (piece) => [ids.get(piece) ?? unknownId] };
}
