/** The vocabulary of a tokenizer.json, which splits pieces of a text into tokens. */
import { isObject } from '../../../errors.js';
import { bytePairs } from './byte-pairs.js';
import { type LibraryModel, WordPiece } from './library.js';
import { unigram } from './unigram.js';
import { type Settings, type Vocabulary, vocabularyIds } from './vocabulary-parts.js';

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
    case 'Unigram':
      return unigram(settings);
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

function wordLevel(vocab: unknown, unknown: unknown): Vocabulary {
  const ids = vocabularyIds(vocab);
  const unknownId = typeof unknown === 'string' ? ids.get(unknown) : undefined;
  return { ids, split: (piece) => [ids.get(piece) ?? unknownId] };
}
