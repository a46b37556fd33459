import type { DecoderConfig } from '../../../contract/architecture.js';
import type { Tokenizer } from '../../../nouns.js';
import { parseTextTokenizerSpec } from '../../tokenizers/tokenizer-spec.js';
import type { StoredTensor } from '../safetensors.js';
import { decoderMetadata, decoderTensors } from './gguf-decoder.js';
import { encodeGguf, F32, type GgufMetadata } from './gguf-file.js';
import { vocabularyMetadata } from './gguf-vocabulary.js';

export interface GgufModel {
  readonly config: DecoderConfig;
  readonly tokenizer: Tokenizer;
  /** The model's name in lists. */
  readonly name: string;
}

/**
 * The header of a model's file for llama.cpp.
 * @throws CheckpointError, TokenizerError naming the feature that such a file cannot express
 */
export function ggufHeader({ config, tokenizer, name }: GgufModel): GgufMetadata {
  return {
    ...decoderMetadata(config),
    'general.type': { type: 'string', value: 'model' },
    'general.name': { type: 'string', value: name },
    'general.file_type': { type: 'uint32', value: F32 },
    ...vocabularyMetadata(parseTextTokenizerSpec(tokenizer.toJSON()), tokenizer.stopTokens, config.vocabSize),
  };
}

/**
 * A model as a GGUF file in float32, with tokenizer and chat template, for llama.cpp and programs that use it.
 * @throws CheckpointError, TokenizerError as `ggufHeader` does, before the first part
 */
export function ggufOf(model: GgufModel, tensors: Iterable<StoredTensor>): AsyncIterable<Uint8Array> {
  return encodeGguf(ggufHeader(model), decoderTensors(model.config, tensors));
}
