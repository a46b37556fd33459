/** The parts of `@huggingface/tokenizers` that drmas uses, with their types: its own are out of reach of `nodenext`. */
import * as library from '@huggingface/tokenizers';

type Settings = Readonly<Record<string, unknown>>;

/** A vocabulary that splits pieces of a text into the texts of tokens. */
export interface LibraryModel {
  readonly tokens_to_ids: Map<string, number>;
  readonly unk_token_id?: number;
  _call(pieces: string[]): string[];
}

interface LibraryNormalizer {
  normalize(text: string): string;
}

interface Parts {
  readonly WordPiece: new (settings: Settings) => LibraryModel;
  readonly PrecompiledNormalizer: new (settings: Settings) => LibraryNormalizer;
}

export const { WordPiece, PrecompiledNormalizer } = library as unknown as Parts;
