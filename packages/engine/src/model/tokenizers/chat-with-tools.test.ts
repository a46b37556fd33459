import { describe, expect, it } from 'vitest';
import { chatTemplateOf, miniTokenizer } from '../../../../../test/support/qwen3-mini.js';
import { parseWithSources } from '../../base/core/exact-json.js';
import { type JsonSchema, type Message, system, user } from '../../base/core/message.js';
import { bytesTokenizer } from './bytes.js';
import { createTokenizer as rebuilt } from './create-tokenizer.js';
import { symbolsTokenizer } from './symbols.js';

const tool = {
  name: 'add',
  description: 'Adds.',
  parameters: { type: 'object', properties: { a: { type: 'number' }, b: { type: 'number' } } },
};
const call = { id: 'call_0011223344556677_0', name: 'add', arguments: '{"a":1,  "b":2.0}' };
const conversation: readonly Message[] = [
  system('Sum.'),
  user('1+2'),
  { role: 'assistant', content: 'Hm.', toolCalls: [call] },
  { role: 'tool', content: '3', toolCallId: call.id, name: 'add' },
];

describe('a conversation with tools', () => {
  it('lists schemas with the digits that a client wrote', () => {
    const text =
      '{"parameters": {"type": "object", "properties": {"a": {"maximum": 9007199254740993, "minimum": 1.0}}}}';
    const { parameters } = parseWithSources(text, new Set(['parameters'])) as { parameters: object };
    const tokenizer = miniTokenizer(chatTemplateOf('qwen3'));
    const prompt = tokenizer.decode(
      tokenizer.chat([user('?')], undefined, [{ name: 'f', parameters: { ...parameters } }]),
    );
    expect(prompt).toContain('"maximum": 9007199254740992');
    const exact = tokenizer.decode(
      tokenizer.chat([user('?')], undefined, [{ name: 'f', parameters: parameters as JsonSchema }]),
    );
    expect(exact).toContain('{"maximum": 9007199254740993, "minimum": 1.0}');
  });

  it.each(['qwen3', 'qwen2_5'] as const)("is written as %s's template says, arguments as objects", (family) => {
    const tokenizer = miniTokenizer(chatTemplateOf(family));
    expect(tokenizer.toolFormat).toBe('hermes');
    const text = tokenizer.decode(tokenizer.chat(conversation, undefined, [tool]));
    expect(text).toContain('<|im_start|>system\nSum.\n\n# Tools\n');
    expect(text).toContain(
      '<tools>\n{"type": "function", "function": {"name": "add", "description": "Adds.", "parameters": {"type": "object", ',
    );
    expect(text).toContain(
      'Hm.\n<tool_call>\n{"name": "add", "arguments": {"a": 1, "b": 2.0}}\n</tool_call><|im_end|>\n' +
        '<|im_start|>user\n<tool_response>\n3\n</tool_response><|im_end|>\n<|im_start|>assistant\n',
    );
    expect(tokenizer.decode(tokenizer.chat([user('hi')]))).not.toContain('# Tools');
  });

  it('has the reasoning before a call where the template writes it, and once if its ids are known', () => {
    const tokenizer = miniTokenizer(chatTemplateOf('qwen3'));
    const thoughtful = conversation.map((each) => (each.role === 'assistant' ? { ...each, reasoning: 'Sum?' } : each));
    const written = '<|im_start|>assistant\n<think>\nSum?\n</think>\n\nHm.\n<tool_call>';
    const text = tokenizer.decode(tokenizer.chat(thoughtful, undefined, [tool]));
    expect(text).toContain(written);
    expect(tokenizer.decode(tokenizer.chat([...thoughtful, user('?')]))).not.toContain('Sum?');
    const ids = tokenizer.encode('<think>\nSum?\n</think>\n\nHm.\n<tool_call>\n{}\n</tool_call>');
    const exact = tokenizer.chat(thoughtful, ({ role }) => (role === 'assistant' ? ids : undefined), [tool]);
    expect(tokenizer.decode(exact).split('Sum?')).toHaveLength(2);
    expect(tokenizer.decode(exact)).toContain(written);
  });

  it('has its calls in the texts if the template leaves them out', () => {
    const tokenizer = miniTokenizer(
      '{% if tools %}return a json object with function name and arguments within <tool_call></tool_call> XML tags.' +
        '{% endif %}{% for message in messages %}[{{ message.role }}]{{ message.content }}{% endfor %}',
    );
    expect(tokenizer.toolFormat).toBe('hermes');
    expect(tokenizer.decode(tokenizer.chat(conversation, undefined, [tool]))).toContain(
      '[assistant]Hm.\n<tool_call>\n{"name": "add", "arguments": {"a":1,  "b":2.0}}\n</tool_call>[tool]3',
    );
    const exact = tokenizer.chat(conversation, ({ role }) => (role === 'assistant' ? [1, 2] : undefined), [tool]);
    expect(exact.join()).toContain(tokenizer.encode('[assistant]').concat(1, 2, tokenizer.encode('[tool]')).join());
  });

  it('is plain text for a template that knows none, and for bytes', () => {
    const simple = miniTokenizer('{% for m in messages %}[{{ m.role }}]{{ m.content }}{% endfor %}');
    expect(simple.toolFormat).toBe('plain');
    expect(simple.decode(simple.chat(conversation, undefined, [tool]))).toBe(
      '[system]Sum.\n@add(a, b): Adds.[user]1+2[assistant]Hm.\n@add(1,2.0)[user]3',
    );
    const bytes = bytesTokenizer();
    expect(bytes.decode(bytes.chat(conversation, undefined, [tool]))).toBe(
      '<|system|>Sum.\n@add(a, b): Adds.<|end|><|user|>1+2<|end|><|assistant|>Hm.\n@add(1,2.0)<|end|><|user|>3<|end|><|assistant|>',
    );
  });

  it('has no list of tools where a vocabulary has no words for it', () => {
    const symbols = ['<end>', '<ask>', ...'0123456789@(){}:,+"ab', 'add', '\n'];
    const spec = { type: 'symbols', symbols, stop: '<end>', endOfUser: '<ask>', endOfAssistant: '<end>' } as const;
    const tokenizer = symbolsTokenizer(spec);
    expect(tokenizer.toolFormat).toBe('plain');
    const messages: Message[] = [
      user('1+2'),
      { role: 'assistant', content: '', toolCalls: [{ ...call, arguments: '{"a":1,"b":2}' }] },
      { role: 'tool', content: '3' },
    ];
    expect(tokenizer.decode(tokenizer.chat(messages, undefined, [tool]))).toBe('1+2<ask>@add(1,2)<end>3<ask>');
  });

  it('is written by the template named tool_use if there is one', () => {
    const list = (name: string, template: string) => ({ name, template });
    const tokenizer = miniTokenizer(undefined, {});
    const { chatTemplate: _, ...spec } = tokenizer.toJSON() as { chatTemplate: string; config: object };
    const templates = [
      list('default', 'without'),
      list('tool_use', `{% if tools %}{{ '<tool_call>\\n{"name": "' }}{% endif %}`),
    ];
    const both = rebuilt({ ...spec, config: { ...spec.config, chat_template: templates } });
    expect(both.toolFormat).toBe('hermes');
    expect(both.decode(both.chat([user('a')]))).toBe('without');
    expect(both.decode(both.chat([user('a')], undefined, [tool]))).toBe('<tool_call>\n{"name": "');
  });

  it('has ids of calls that Mistral takes: nine letters and digits', () => {
    const source =
      '{% for m in messages %}{{ m.tool_call_id }}{% if m.tool_calls %}{% for c in m.tool_calls %}{{ c.id }},{% endfor %}{% endif %}{% endfor %}{{ tools }}';
    const tokenizer = miniTokenizer(source);
    const text = tokenizer.decode(tokenizer.chat(conversation.slice(2), undefined, []));
    expect(text).toMatch(/^([0-9a-z]{9}),\1/);
  });
});
