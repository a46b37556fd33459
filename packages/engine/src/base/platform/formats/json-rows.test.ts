import { describe, expect, it } from 'vitest';
import { TaskError } from '../../core/errors.js';
import { DEEPEST } from '../../core/validation/objects.js';
import { JsonSplitter, jsonRows } from './json-rows.js';

function* piecesOf(text: string, size: number) {
  for (let at = 0; at < text.length; at += size) yield text.slice(at, at + size);
}

describe('an entry without end', () => {
  it.each(['{"text":"%"}', '[{"text":"%"}]', '%{}'])(
    'in the form of %s takes time by its length alone, however small its pieces',
    (form) => {
      const filling = (form.startsWith('%') ? ' ' : 'x').repeat(2 ** 24);
      const splitter = new JsonSplitter('x');
      let rows = 0;
      for (const piece of piecesOf(form.replace('%', filling), 1000)) rows += splitter.push(piece).length;
      expect(rows + splitter.end().length).toBe(1);
    },
  );

  it.each([
    ['a line', '{"text":"', 2],
    ['an array', '[{"text":"', 1],
  ])('of %s is refused if it is too long for a text', { tags: 'verify' }, (_, first, line) => {
    const splitter = new JsonSplitter('tasks.json');
    splitter.push(line === 1 ? first : `\n${first}`);
    const push = () => splitter.push('x'.repeat(2 ** 24));
    for (let i = 0; i < 7; i++) push();
    expect(push).toThrow(`tasks.json:${line}: expected entries of at most 134217728 characters`);
  });
});

describe('an array', () => {
  it.each(['[1, 2}', '[}', '[{"a": [1]}\n}'])('ends with the bracket that it begins with, unlike %j', (text) => {
    expect(() => jsonRows(text, 'tasks.json')).toThrow(TaskError);
    expect(() => jsonRows(text, 'tasks.json')).toThrow('expected "]" at the end of the array, got "}"');
  });
});

describe('an entry in itself', () => {
  const nested = (depth: number) => '['.repeat(depth) + ']'.repeat(depth);

  it('may be nested up to the limit, and not deeper', () => {
    expect(jsonRows(`{"question":${nested(DEEPEST - 1)}}`, 'x')).toHaveLength(1);
    for (const depth of [DEEPEST, 100_000])
      expect(() => jsonRows(`\n{"question":${nested(depth)}}`, 'x')).toThrow(TaskError);
  });

  it('may have as many brackets in its texts as it likes', () => {
    expect(jsonRows(`{"a":"${'[{'.repeat(1000)}\\"["}`, 'x')).toHaveLength(1);
  });
});
