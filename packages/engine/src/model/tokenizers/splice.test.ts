import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { assistant, type Message, user } from '../../base/core/message.js';
import { splice } from './splice.js';

const simple = (messages: readonly Message[]) =>
  `${messages.map(({ role, content }) => `<${role}>${content}</>`).join('')}<assistant>`;
const trimming = (messages: readonly Message[]) =>
  simple(messages.map((message) => ({ ...message, content: message.content.trim() })));
const dropping = (messages: readonly Message[]) =>
  simple(messages.map((message) => ({ ...message, content: message.content.replace(/^.*<\/think>/s, '') })));

describe('splice', () => {
  it('renders plainly when no ids are known', () => {
    expect(splice(simple, [user('q')], undefined)).toEqual(['<user>q</><assistant>']);
    expect(splice(simple, [user('q')], () => undefined)).toEqual(['<user>q</><assistant>']);
  });

  it('puts ids where the messages stand, whatever the texts are', () => {
    const content = fc.oneof(fc.string(), fc.constantFrom('', '\ue0000:0\ue001', '\ue0000:', '<user>'));
    fc.assert(
      fc.property(fc.array(fc.record({ content, known: fc.boolean() }), { maxLength: 6 }), (rows) => {
        const messages = rows.map((row) => assistant(row.content));
        const ids = messages.map((_, i) => [i]);
        const pieces = splice(simple, messages, (message) => {
          const i = messages.indexOf(message);
          return rows[i]?.known ? ids[i] : undefined;
        });
        const restored = pieces.map((piece) => (typeof piece === 'string' ? piece : messages[piece[0] ?? -1]?.content));
        expect(restored.join('')).toBe(simple(messages));
        const expected = rows.flatMap((row, i) => (row.known ? [[i]] : []));
        expect(pieces.filter((piece) => typeof piece !== 'string')).toEqual(expected);
      }),
    );
  });

  it('keeps the ids of a message whose white space the template trims', () => {
    expect(splice(trimming, [assistant(' yes\n')], () => [7])).toEqual(['<assistant>', [7], '</><assistant>']);
  });

  it('puts them whole where the template would drop a part', () => {
    const messages = [assistant('<think>hm</think>no'), assistant('yes')];
    expect(splice(dropping, messages, ({ content }) => [content.length])).toEqual([
      '<assistant>',
      [19],
      '</><assistant>',
      [3],
      '</><assistant>',
    ]);
  });

  it('renders as it stands what the template has no place for, or several', () => {
    const losing = (messages: readonly Message[]) =>
      simple(messages.filter(({ content }) => !content.includes('\ue0000:0')));
    expect(splice(losing, [assistant('a'), assistant('b')], () => [7])).toEqual([
      '<assistant>a</><assistant>',
      [7],
      '</><assistant>',
    ]);
    const doubling = (messages: readonly Message[]) => simple([...messages, ...messages.slice(0, 1)]);
    expect(splice(doubling, [assistant('a')], () => [7])).toEqual([doubling([assistant('a')])]);
  });

  describe('of calls', () => {
    const call = { id: 'c', name: 'add', arguments: '{"a": 1.0}' };
    const messages: Message[] = [
      user('1'),
      { role: 'assistant', content: 'Hm.', toolCalls: [call] },
      { role: 'tool', content: '2', toolCallId: 'c' },
    ];

    it('takes the place of content and calls', () => {
      const hermes = (list: readonly Message[]) =>
        simple(
          list.map(({ role, content, toolCalls = [] }) => ({
            role,
            content: content + toolCalls.map(({ name }) => `(${name})`).join(''),
          })),
        );
      expect(splice(hermes, messages, ({ role }) => (role === 'assistant' ? [7] : undefined))).toEqual([
        '<user>1</><assistant>',
        [7],
        '</><tool>2</><assistant>',
      ]);
    });

    it('does so where a result has to follow a call, as templates of Mistral want it', () => {
      const strict = (list: readonly Message[]): string =>
        list
          .map(({ role, content, toolCalls = [] }, i) => {
            if (role === 'tool' && !list[i - 1]?.toolCalls?.length) throw new Error('a result without a call');
            if (role === 'user') return `[I]${content}[/I]`;
            return role === 'tool'
              ? `[R]${content}[/R]`
              : ` [C] [${toolCalls.map(({ name }) => `{"name": "${name}"}`).join()}]</s>`;
          })
          .join('');
      const pieces = splice(strict, messages, ({ role }) => (role === 'assistant' ? [7] : undefined), ['</s>']);
      expect(pieces).toEqual(['[I]1[/I]', [7], '</s>[R]2[/R]']);
      expect(splice(strict, messages, ({ role }) => (role === 'assistant' ? [7] : undefined))).toEqual([
        strict(messages),
      ]);
    });
  });
});
