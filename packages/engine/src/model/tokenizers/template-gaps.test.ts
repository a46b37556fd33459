import { describe, expect, it } from 'vitest';
import { miniTokenizer } from '../../../../../test/support/qwen3-mini.js';
import { assistant, type Message, system, user } from '../../base/core/message.js';

const loop = (body: string) => `{% for m in messages %}${body}{% endfor %}`;
const written = '[{{ m.role }}]{{ m.content }}';
const templates = {
  writing: loop(written),
  dropping: loop(`{% if m.role != 'system' or loop.first %}${written}{% endif %}`),
  replacing: `{% set ns = namespace(text='') %}${loop("{% if m.role == 'system' %}{% set ns.text = m.content %}{% endif %}")}{{ ns.text }}`,
  folding: `{% set first = messages[0].content %}${loop("{% if m.role == 'user' %}{{ first }}, {{ m.content }}{% endif %}")}`,
  refusing: loop(
    `{% if m.role == 'system' and not loop.first %}{{ raise_exception('only one') }}{% endif %}${written}`,
  ),
  alternating: loop(
    `{% if (m.role == 'user') != (loop.index0 % 2 == 0) %}{{ raise_exception('must alternate') }}{% endif %}${written}`,
  ),
  last: '{{ messages[-1].content }}',
};
const chat = (template: keyof typeof templates, messages: readonly Message[]) => {
  const tokenizer = miniTokenizer(templates[template]);
  return tokenizer.decode(tokenizer.chat(messages));
};

describe('several system messages', () => {
  const first = [system('A'), system('B'), user('q')];

  it('at the beginning are one if the template refuses two or leaves one out', () => {
    expect(chat('writing', first)).toBe('[system]A[system]B[user]q');
    expect(chat('dropping', first)).toBe('[system]A\n\nB[user]q');
    expect(chat('replacing', first)).toBe('A\n\nB');
    expect(chat('refusing', first)).toBe('[system]A\n\nB[user]q');
    expect(chat('refusing', first.slice(0, 2))).toBe('[system]A\n\nB');
  });

  it('are refused behind other messages if the template would leave them out', () => {
    const later = [system('A'), user('q'), assistant('a'), system('B'), user('r')];
    expect(chat('writing', later)).toBe('[system]A[user]q[assistant]a[system]B[user]r');
    expect(() => chat('refusing', later)).toThrow(/refused the conversation: only one/);
    expect(() => chat('dropping', later)).toThrow(/refused the conversation: it leaves out system messages/);
    expect(() => chat('dropping', [user('q'), system('B')])).toThrow(/it leaves out system messages/);
  });

  it('are refused without other messages if the template would leave them out', () => {
    expect(chat('writing', [system('A')])).toBe('[system]A');
    expect(chat('folding', [system('A'), user('q')])).toBe('A, q');
    expect(() => chat('folding', [system('A')])).toThrow(/it leaves out a system message without another message/);
  });
});

describe('user messages in a row', () => {
  const asked = [user('p'), user('q'), assistant('a'), user('r'), user('s'), user('t')];

  it('are one if the template refuses two or leaves one out', () => {
    expect(chat('writing', asked)).toBe('[user]p[user]q[assistant]a[user]r[user]s[user]t');
    expect(chat('alternating', asked)).toBe('[user]p\n\nq[assistant]a[user]r\n\ns\n\nt');
    expect(chat('last', asked)).toBe('r\n\ns\n\nt');
  });

  it('do not hide that the template refuses the conversation for another reason', () => {
    expect(() => chat('alternating', [user('p'), user('q'), assistant('a'), assistant('b')])).toThrow(/must alternate/);
  });
});
