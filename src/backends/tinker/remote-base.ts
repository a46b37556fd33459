/**
 * What is needed of a model that a server trains: its tokenizer and its sizes, from a directory in the Hugging Face
 * layout.
 */
import { z } from 'zod';
import type { DecoderConfig } from '../../contract/architecture.js';
import { CheckpointError } from '../../core/errors.js';
import type { Files } from '../../core/files.js';
import type { Tokenizer } from '../../core/tokenizer.js';
import { readConfig } from '../../model/formats/model-config.js';
import { readJson, readTokenizer } from '../../model/formats/tokenizer-files.js';
import { parseWith } from '../../model/formats/validated-json.js';
import type { Limits } from './wire/datum.js';

/** Models that also see have the sizes of their text part in a section. */
const sizes = z.looseObject({ vocab_size: z.int().positive(), max_position_embeddings: z.int().positive() });
const configFile = z.union([sizes, z.looseObject({ text_config: sizes }).transform((file) => file.text_config)]);

export interface RemoteBase extends Limits {
  readonly tokenizer: Tokenizer;
  /** Undefined for models of other families than the engine's own, whose layers are not known here. */
  readonly config: DecoderConfig | undefined;
}

/** @throws CheckpointError naming the file and what was expected; TokenizerError */
export async function readBase(files: Files, directory: string, chatTemplate?: string): Promise<RemoteBase> {
  const file = `${directory}/config.json`;
  const json = await readJson(files, file);
  const { vocab_size, max_position_embeddings } = parseWith(configFile, json, file);
  return {
    vocabSize: vocab_size,
    context: max_position_embeddings,
    tokenizer: await readTokenizer(files, directory, chatTemplate),
    config: layersOf(json, file),
  };
}

function layersOf(json: unknown, file: string): DecoderConfig | undefined {
  try {
    return readConfig(json, file).config;
  } catch (error) {
    if (error instanceof CheckpointError) return undefined;
    throw error;
  }
}
