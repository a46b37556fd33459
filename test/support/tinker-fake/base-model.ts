import { mkdirSync } from 'node:fs';
import { join } from 'node:path';
import type { DecoderConfig } from '@drmas/engine/contract';
import { startEmbedded } from '@drmas/engine/internal/embedded/start-embedded';
import type { Tokenizer } from '@drmas/engine/nouns';
import { nodeFiles } from '@drmas/engine/platform';
import { bytesTokenizer } from '@drmas/engine/tokens';

/** Writes a small random decoder as a Hugging Face directory, for a fake to serve. Returns the directory. */
export async function writeBaseModel(
  root: string,
  options: { readonly name?: string; readonly tokenizer?: Tokenizer; readonly config?: Partial<DecoderConfig> } = {},
): Promise<string> {
  const tokenizer = options.tokenizer ?? bytesTokenizer();
  const directory = join(root, options.name ?? 'base-model');
  mkdirSync(directory, { recursive: true });
  const config: DecoderConfig = {
    vocabSize: tokenizer.vocabSize,
    width: 8,
    layers: 1,
    heads: 2,
    kvHeads: 1,
    headDim: 4,
    feedForward: 12,
    context: 64,
    ropeBase: 10_000,
    normEpsilon: 1e-6,
    ...options.config,
  };
  const backend = await startEmbedded({ threads: 1, files: nodeFiles });
  const model = await backend.open({ type: 'random', config, tokenizer, seed: 3 }, 'frozen', 'base');
  await model.save(directory);
  await backend.dispose();
  return directory;
}
