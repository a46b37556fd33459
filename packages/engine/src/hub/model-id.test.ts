import { describe, expect, it } from 'vitest';
import { CheckpointError } from '../base/core/errors.js';
import { formatModelId, parseModelId } from './model-id.js';

describe('the name of a model on a hub', () => {
  it.each([
    ['Qwen/Qwen2.5-0.5B-Instruct', 'Qwen/Qwen2.5-0.5B-Instruct', 'main'],
    ['a/b@v1.0', 'a/b', 'v1.0'],
    ['a/b@refs/pr/1', 'a/b', 'refs/pr/1'],
    [`a/b_c@${'0'.repeat(40)}`, 'a/b_c', '0'.repeat(40)],
  ])('%s', (text, name, revision) => {
    expect(parseModelId(text)).toEqual({ name, revision });
    expect(formatModelId({ name, revision })).toBe(text);
  });

  it.each([
    './a/b',
    '../a/b',
    '..',
    '/a/b',
    '~/a/b',
    '~me/b',
    'a',
    'a/b/c',
    'a//b',
    'a/b/',
    'a\\b',
    'a--b/c',
    'a/..b',
    '-a/b',
    'a/b.',
    'a b/c',
    '',
  ])('is not %j', (text) => expect(parseModelId(text)).toBeUndefined());

  it.each(['a/b@', 'a/b@..', 'a/b@x/../y', 'a/b@/x', 'a/b@x y', 'a/b@x/'])('refuses %j', (text) =>
    expect(() => parseModelId(text)).toThrow(CheckpointError),
  );
});
