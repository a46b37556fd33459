import { callsIn, endsOfThinking, firstMark, toolFormatNames, withoutThinking } from '@drmas/engine/tool-calls';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { processorSeconds } from '../../../test/support/time-and-chance.js';
import { ContentStream } from './content-stream.js';

const tools = [{ name: 'add', parameters: { type: 'object', properties: {} } }];

/** The pieces of a text that comes in parts, joined by their kind. */
function streamed(stream: ContentStream, parts: readonly string[]) {
  const all = parts.flatMap((part) => stream.push(part));
  const joined = (type: string) => all.filter((piece) => piece.type === type).map(({ text }) => text);
  return { text: joined('text').join(''), reasoning: joined('reasoning').join('') };
}

describe('a response while it is written', () => {
  it('may be spaces without an end, which take a time that grows with their number', async () => {
    const seconds = await processorSeconds(() => {
      for (const begin of ['', 'word']) {
        const parts = [begin, ...Array.from({ length: 150_000 }, () => ' ')];
        expect(streamed(new ContentStream(false, 'hermes'), parts).text).toBe(begin);
        expect(streamed(new ContentStream(true, 'hermes'), parts).reasoning).toBe(begin);
      }
    });
    expect(seconds).toBeLessThan(3);
  });

  const mark = fc.constantFrom(
    ...['<think>', '</think>', '[THINK]', '[/THINK]'],
    ...['<', '['],
    '@',
    '@add()',
    '<tool_call>',
    '[TOOL_CALLS]',
    '{',
    '\n',
    ' ',
  );
  const part = fc.oneof(mark, fc.string({ maxLength: 4 }));

  it.each([undefined, ...toolFormatNames])('is given as far as it will be the answer (calls: %s)', (format) => {
    fc.assert(
      fc.property(fc.array(part, { maxLength: 12 }), fc.boolean(), (parts, isOpen) => {
        const text = parts.join('');
        const stream = new ContentStream(isOpen, format);
        const given = streamed(stream, parts);
        const { rest, reasoning = '' } = withoutThinking(text, isOpen);
        expect(rest.startsWith(given.text)).toBe(true);
        expect(reasoning.startsWith(given.reasoning)).toBe(true);
        if (firstMark(text, endsOfThinking(text)) !== undefined) expect(given.reasoning).toBe(reasoning);
        expect(stream.given).toBe(given.text);
        const mayBegin = ['<think>', '[THINK]'].some((begin) => begin.startsWith(text.trimStart()));
        if (format === undefined && !mayBegin) expect(given.text).toBe(rest.trimEnd());
        const read = format && callsIn(rest, format, tools);
        if (read !== undefined) expect(read.content.trimStart().startsWith(given.text.trimStart())).toBe(true);
      }),
    );
  });

  it.each([
    ['<think>', '</think>'],
    ['[THINK]', '[/THINK]'],
  ])('is split into the same parts for all cuts: %s', (begin, end) => {
    const text = `${begin}\n1 + 1\n${end}\n\nIt is 2.\n@add()`;
    for (let size = 1; size <= text.length; size++) {
      const parts = text.match(new RegExp(`[^]{1,${size}}`, 'g')) ?? [];
      const { text: answer, reasoning } = streamed(new ContentStream(false, 'plain'), parts);
      expect({ answer, reasoning }).toEqual({ answer: 'It is 2.', reasoning: '1 + 1' });
    }
  });

  it('has no piece of an empty thought', () => {
    const text = '<think>\n\n</think>\n\nIt is 2.';
    for (let size = 1; size <= text.length; size++) {
      const stream = new ContentStream(false);
      const pieces = (text.match(new RegExp(`[^]{1,${size}}`, 'g')) ?? []).flatMap((part) => stream.push(part));
      expect(pieces.map(({ type }) => type)).not.toContain('reasoning');
    }
  });

  it('continues the reasoning that the prompt has begun', () => {
    const pieces = streamed(new ContentStream(true), ['1 + 1', '</thi', 'nk> 2']);
    expect(pieces).toEqual({ reasoning: '1 + 1', text: '2' });
  });
});
