/** The local part of a model that a server trains: tokenizer and sizes, from a directory in Hugging Face's layout. */

import type { DecoderConfig } from '@drmas/engine/contract';
import { CheckpointError } from '@drmas/engine/errors';
import { describeModel, holdsModel, parseWith, readConfig, readJson, readTokenizer } from '@drmas/engine/formats';
import type { Files } from '@drmas/engine/host';
import type { Tokenizer } from '@drmas/engine/nouns';
import { z } from 'zod';
import type { Limits } from './wire/datum.js';

/** Models with vision have the sizes of their text part in a section. */
const sizes = z.looseObject({ vocab_size: z.int().positive(), max_position_embeddings: z.int().positive() });
const configFile = z.union([sizes, z.looseObject({ text_config: sizes }).transform((file) => file.text_config)]);

export interface RemoteBase extends Limits {
  readonly tokenizer: Tokenizer;
  /** Undefined for model families that the engine does not have: their layers are not known here. */
  readonly config: DecoderConfig | undefined;
}

/** @throws CheckpointError with the file and the expected content; TokenizerError */
export async function readBase(files: Files, directory: string, chatTemplate?: string): Promise<RemoteBase> {
  if (!(await files.exists(`${directory}/config.json`)) && (await holdsModel(files, directory))) {
    const { config } = await describeModel(files, directory);
    const { vocabSize, context } = config;
    return { vocabSize, context, tokenizer: await readTokenizer(files, directory, chatTemplate), config };
  }
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
