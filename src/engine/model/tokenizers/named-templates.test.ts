import { describe, expect, it } from 'vitest';
import { goldenPath } from '../../../../test/goldens.js';
import { assistant, system, user } from '../../../base/core/message.js';
import { nodeFiles } from '../../../base/platform/node-files.js';
import { readTokenizer } from '../formats/tokenizer-files.js';
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
