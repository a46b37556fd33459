import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { assistant, type Message, user } from '../../core/message.js';
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

  it('lets the template drop what it wants to drop', () => {
    const messages = [assistant('<think>hm</think>no'), assistant('yes')];
    expect(splice(dropping, messages, () => [7])).toEqual(['<assistant>no</><assistant>', [7], '</><assistant>']);
  });
});
