import { cpSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { goldenPath } from '../../../../../test/goldens.js';
import { writeMiniQwen3 } from '../../../../../test/support/qwen3-mini.js';
import { assistant, system, user } from '../../base/core/message.js';
import type { Tokenizer } from '../../base/core/tokenizer.js';
import { nodeFiles } from '../../base/platform/node-files.js';
import { readTokenizer, writeTokenizer } from '../formats/tokenizer-files.js';
import { wholeWeights } from '../initial-weights.js';
import { modelSchema } from '../model-schema.js';
import { type CheckpointSpec, checkpoint } from '../model-spec.js';
import { TEMPLATE_NAMES, templateOf, templateProblem } from './named-templates.js';

const read = (model: string, template: string) => readTokenizer(nodeFiles, goldenPath(`models/${model}`), template);
const messages = [system('Add.'), user('1+1'), assistant('2'), user('2+2')];

/** A model of the goldens that has the tokens of each template. */
const modelFor = { plain: 'llama-mini', chatml: 'qwen2-mini', llama3: 'llama-mini' } as const;

describe.each(TEMPLATE_NAMES)('the chat template %s', (name) => {
  it('ends a prompt where the answer begins, and each message before it', async () => {
    const tokenizer = await read(modelFor[name], name);
    expect(tokenizer.decode(tokenizer.chat(messages))).toMatchSnapshot();
  });

  it('extends a conversation token for token', async () => {
    const tokenizer = await read(modelFor[name], name);
    const first = tokenizer.chat(messages.slice(0, 2));
    const answered = assistant('2');
    const ids = tokenizer.encode(' two');
    const next = tokenizer.chat([...messages.slice(0, 2), answered, user('2+2')], (message) =>
      message === answered ? ids : undefined,
    );
    const [end = -1] = tokenizer.stopTokens;
    expect(next.slice(0, first.length + ids.length + 1)).toEqual([...first, ...ids, end]);
  });

  it('is known by its text too, with the token that ends its messages', () => {
    const { source, end } = templateOf(name);
    expect(templateOf(source)).toEqual({ source, ...(end !== undefined && { end }) });
  });
});

it('says what is no template', () => {
  expect(templateProblem('chatlm')).toMatch(/expected the text of a Jinja template, or one of plain, chatml, llama3/);
  expect(templateProblem('toString')).toMatch(/expected the text/);
  expect(templateProblem('{% for x in %}')).toMatch(/the chat template cannot be read/);
  expect(templateProblem("{{ messages[0]['content'] }}")).toBeUndefined();
});

it('refuses a template whose end of a message is no token of the model', async () => {
  await expect(read('llama-mini', 'chatml')).rejects.toThrow(
    /ends messages with <\|im_end\|>, which is no token of .*llama-mini; 'plain' suits every model/,
  );
});

it('ends a response with the end of a message, and with what ended it before', async () => {
  const plain = await read('qwen2-mini', '{{ messages[0].content }}');
  const chatml = await read('qwen2-mini', 'chatml');
  expect(chatml.stopTokens[0]).toBe(chatml.encode('<|im_end|>')[0]);
  expect([...chatml.stopTokens].sort()).toEqual([...plain.stopTokens].sort());
});

describe("a template's variables", () => {
  const thinking = (text: string) => text.includes('<think>');
  const variables = { enable_thinking: false };
  const read = async (model: CheckpointSpec) => {
    const weights = wholeWeights(model, 0);
    if (weights.type !== 'directory') throw new Error('expected a directory');
    return readTokenizer(nodeFiles, weights.directory, weights.chatTemplate);
  };
  const root = mkdtempSync(join(tmpdir(), 'drmas-template-'));
  const qwen3 = join(root, 'qwen3');
  writeMiniQwen3(qwen3);

  it("reach the model's own template, and stay with it in the files of a checkpoint", async () => {
    const chat = (tokenizer: Tokenizer) => tokenizer.decode(tokenizer.chat([user('1+1')]));
    const [plain, brief] = [await read(checkpoint(qwen3)), await read(checkpoint(qwen3, { variables }))];
    expect(thinking(chat(plain))).toBe(false);
    expect(chat(brief)).toBe(`${chat(plain)}<think>\n\n</think>\n\n`);
    const saved = join(root, 'saved');
    mkdirSync(saved);
    await writeTokenizer(nodeFiles, saved, brief);
    expect(chat(await readTokenizer(nodeFiles, saved))).toBe(chat(brief));
  });

  it('reach a template of the recipe', async () => {
    const chatTemplate = '{{ kind }} {{ size }}\n{% if loud %}!{% endif %}';
    const values = { kind: "it's", size: -1.5, loud: true };
    const tokenizer = await read(checkpoint(qwen3, { chatTemplate, variables: values }));
    expect(tokenizer.decode(tokenizer.chat([user('1')]))).toBe("it's -1.5\n!");
    const chatml = await read(checkpoint(goldenPath('models/qwen2-mini'), { chatTemplate: 'chatml', variables }));
    expect(chatml.stopTokens[0]).toBe(chatml.encode('<|im_end|>')[0]);
  });

  it('keep the date that a template of Llama 3 writes', async () => {
    const own =
      '{% if not date_string is defined %}{% set date_string = strftime_now("%d %b %Y") %}{% endif %}' +
      '{{ date_string }}, {{ messages[0].content }}';
    const llama = join(root, 'llama');
    cpSync(qwen3, llama, { recursive: true });
    writeFileSync(join(llama, 'chat_template.jinja'), own);
    const tokenizer = await read(checkpoint(llama, { variables: { date_string: '26 Jul 2024' } }));
    expect(tokenizer.decode(tokenizer.chat([user('1')]))).toBe('26 Jul 2024, 1');
  });

  it('are refused if they cannot be written in a template, or if there is none', async () => {
    const refused = (variables: unknown) =>
      modelSchema.safeParse({ type: 'checkpoint', path: qwen3, variables }).error?.issues[0]?.message;
    expect(refused({ 'a b': true })).toBeDefined();
    expect(refused({ a: '" %}' })).toBe('expected a text without quotes, backslashes, braces and percent signs');
    expect(refused({ a: [1] })).toBeDefined();
    expect(refused(variables)).toBeUndefined();
    const without = join(root, 'without');
    cpSync(qwen3, without, { recursive: true });
    rmSync(join(without, 'chat_template.jinja'));
    const file = join(without, 'tokenizer_config.json');
    writeFileSync(file, JSON.stringify({ ...JSON.parse(readFileSync(file, 'utf8')), chat_template: undefined }));
    await expect(read(checkpoint(without, { variables }))).rejects.toThrow('has no chat template whose variables');
  });
});
