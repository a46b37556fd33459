import { expect, it } from 'vitest';
import { z } from 'zod';
import { RunError } from '../errors.js';
import { faultOf, laterVersion, parseStored } from './parse-stored.js';

const schema = z.object({
  version: z.literal(1),
  names: z.record(z.string(), z.object({ steps: z.int().min(0) })),
  list: z.array(z.string()).optional(),
});
const file = { path: 'run/x.json', what: 'the record of a run', fault: (message: string) => new RunError(message) };
const read = (text: string) => parseStored(schema, text, file);
const right = { version: 1, names: { solver: { steps: 2 } } };

it('gives a value that fits', () => {
  expect(read(JSON.stringify(right))).toEqual(right);
});

it.each([
  ['a number', { ...right, names: { solver: { steps: 'x' } } }, 'names.solver.steps: expected a number, got "x"'],
  ['null', { ...right, list: null }, 'list: expected an array, got null'],
  ['a missing field', { version: 1 }, 'names: is required'],
  ['no object', [1], 'expected an object, got [1]'],
  ['many', { version: 1, names: { a: 1, b: 1, c: 1, d: 1, e: 1 } }, 'c: expected an object, got 1; and 2 more'],
])('names the wrong fields on one line: %s', (_, value, message) => {
  const act = () => read(JSON.stringify(value));
  expect(act).toThrow(RunError);
  expect(act).toThrow(`${message}`);
  expect(act).toThrow(/^run\/x\.json is not the record of a run: [^\n]+$/);
  expect(faultOf(schema, value)).toContain(message);
});

it.each([
  ['text that is cut', '{"version":1,\n"na'],
  ['values that nest too deep', `${'['.repeat(600)}${']'.repeat(600)}`.padEnd(3000)],
])('refuses %s on one line', (_, text) => {
  expect(() => read(text)).toThrow(/^run\/x\.json is not the record of a run: it[^\n]+$/);
});

it('says that a later version wrote the file', () => {
  expect(() => read('{"version":2,"names":[]}')).toThrow(
    'run/x.json was written by a later version of drmas (format 2, this version reads 1): update drmas',
  );
  expect(['1', 1, -1, 1.5, null].map((version) => laterVersion({ version }, 1))).toEqual(Array(5).fill(undefined));
});
