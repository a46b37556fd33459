import type { Tokenizer } from '../../nouns.js';
import { bytesTokenizer } from './bytes.js';
import { choicesTokenizer } from './choice-names.js';
import { huggingFaceTokenizer } from './huggingface.js';
import { symbolsTokenizer } from './symbols.js';
import { parseTokenizerSpec } from './tokenizer-spec.js';

/**
 * Creates a tokenizer from its plain description: a recipe's, or the result of `toJSON`.
 * @throws TokenizerError when the description is malformed.
 */
export function createTokenizer(description: unknown): Tokenizer {
  const spec = parseTokenizerSpec(description);
  switch (spec.type) {
    case 'symbols':
      return symbolsTokenizer(spec);
    case 'bytes':
      return bytesTokenizer();
    case 'choices':
      return choicesTokenizer(spec);
    case 'huggingface':
      return huggingFaceTokenizer(spec);
  }
}
