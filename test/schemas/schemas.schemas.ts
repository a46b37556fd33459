/** The check of JSON schemas beside the package jsonschema of Python, on random schemas and values. */
import { spawnSync } from 'node:child_process';
import { readFile } from 'node:fs/promises';
import { fileURLToPath } from 'node:url';
import { describe, expect, it } from 'vitest';
import { fitsSchema } from '../../src/base/core/validation/json-schema.js';
import { pythonEnvironment } from '../support/python-environment.js';
import { type Pair, randomPairs } from './pairs.js';

const PAIRS = 6000;

const environment = await pythonEnvironment({
  name: 'schemas',
  requirements: new URL('requirements.txt', import.meta.url),
  what: 'jsonschema (5 MB)',
});
const available = !('unavailable' in environment);
if (!available) console.log(`SKIPPED: schemas beside Python's jsonschema, because ${environment.unavailable}`);

/** What jsonschema says of each pair. */
function judged(pairs: readonly Pair[]): boolean[] {
  const input = pairs.map(({ schema, value }) => `${JSON.stringify([schema, value])}\n`).join('');
  const script = fileURLToPath(new URL('judge.py', import.meta.url));
  const python = available ? environment.python : '';
  const { status, stdout, stderr } = spawnSync(python, [script], { input, encoding: 'utf8', maxBuffer: 1e8 });
  if (status !== 0) throw new Error(`jsonschema failed: ${stderr}`);
  return stdout
    .trim()
    .split('\n')
    .map((line) => JSON.parse(line) === true);
}

describe.skipIf(!available)('JSON schemas', () => {
  it.each([9003, 9004])(`are read as jsonschema reads them, with ${PAIRS} pairs of the seed %i`, (seed) => {
    const pairs = randomPairs(PAIRS, seed);
    const verdicts = judged(pairs);
    const differing = pairs.filter(({ schema, value }, i) => fitsSchema(JSON.parse(value), schema) !== verdicts[i]);
    expect(differing).toEqual([]);
    expect(verdicts.filter(Boolean).length).toBeGreaterThan(PAIRS / 4);
    expect(verdicts.filter((each) => !each).length).toBeGreaterThan(PAIRS / 4);
  });

  it('keep the verdicts that the daily test reads', async () => {
    const lines = (await readFile(new URL('verdicts.jsonl', import.meta.url), 'utf8')).trim().split('\n');
    const stored = lines.map((line) => JSON.parse(line) as [Pair['schema'], string, boolean]);
    const pairs = stored.map(([schema, value]) => ({ schema, value }));
    expect(judged(pairs)).toEqual(stored.map(([, , verdict]) => verdict));
  });
});
