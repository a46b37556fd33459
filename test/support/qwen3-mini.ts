/** The tiny Qwen3 of the goldens with the chat template of the real one, which knows tools and thinking. */
import { cpSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { Tokenizer } from '@drmas/engine/nouns';
import { createTokenizer } from '@drmas/engine/tokens';
import { goldenPath } from '../goldens.js';

const directory = goldenPath('models/qwen3-mini-bf16');

/** The chat template of a family, of test/fixtures/chat-templates. */
export const chatTemplateOf = (family: 'qwen3' | 'qwen2_5'): string =>
  readFileSync(new URL(`../fixtures/chat-templates/${family}.jinja`, import.meta.url), 'utf8');

/** Its tokenizer with a chat template. */
export function miniTokenizer(
  chatTemplate = chatTemplateOf('qwen3'),
  variables: Record<string, unknown> = {},
): Tokenizer {
  const read = (file: string): unknown => JSON.parse(readFileSync(`${directory}/${file}`, 'utf8'));
  const files = { tokenizer: read('tokenizer.json'), config: read('tokenizer_config.json') };
  return createTokenizer({ type: 'huggingface', ...files, chatTemplate, variables });
}

/** Writes the tiny random Qwen3 with the chat template of the real one, whose texts need a longer context. */
export function writeMiniQwen3(target: string): void {
  cpSync(directory, target, { recursive: true });
  writeFileSync(join(target, 'chat_template.jinja'), chatTemplateOf('qwen3'));
  const config = JSON.parse(readFileSync(join(target, 'config.json'), 'utf8'));
  writeFileSync(join(target, 'config.json'), JSON.stringify({ ...config, max_position_embeddings: 1024 }));
}
