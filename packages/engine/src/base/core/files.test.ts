import { posix } from 'node:path';
import fc from 'fast-check';
import { expect, it } from 'vitest';
import { joinPath } from './files.js';

it('joins directories and names as Node does', () => {
  const name = fc.stringMatching(/^[a-z0-9-]{1,8}$/);
  const property = fc.property(
    fc.constantFrom('/', ''),
    fc.array(name, { minLength: 1, maxLength: 5 }),
    (root, names) => {
      const [first, ...more] = names as [string, ...string[]];
      expect(joinPath(`${root}${first}`, ...more)).toBe(posix.join(`${root}${first}`, ...more));
      expect(joinPath(`${root}${first}/`, ...more)).toBe(posix.join(`${root}${first}/`, ...more));
    },
  );
  fc.assert(property);
});

it('keeps the root, and a path without more parts', () => {
  expect([joinPath('/', 'a'), joinPath('a')]).toEqual(['/a', 'a']);
});
