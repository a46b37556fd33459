/** The check of JSON schemas beside the package jsonschema of Python, on random schemas and values. */
import { spawnSync } from 'node:child_process';
import { readFile } from 'node:fs/promises';
import { fileURLToPath } from 'node:url';
import { exactJson, fitsJsonSchema, parseExactly, parseWithSource } from '@drmas/engine/errors';
import type { JsonSchema } from '@drmas/engine/nouns';
import { describe, expect, it } from 'vitest';
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

/** The verdict of jsonschema about each pair; null if it fails. */
function judged(pairs: readonly Pair[]): (boolean | null)[] {
  const input = pairs.map(({ schema, value }) => `[${schema},${JSON.stringify(value)}]\n`).join('');
  const script = fileURLToPath(new URL('judge.py', import.meta.url));
  const python = available ? environment.python : '';
  const { status, stdout, stderr } = spawnSync(python, [script], { input, encoding: 'utf8', maxBuffer: 1e8 });
  if (status !== 0) throw new Error(`jsonschema failed: ${stderr}`);
  return stdout
    .trim()
    .split('\n')
    .map((line) => JSON.parse(line));
}

describe.skipIf(!available)('JSON schemas', () => {
  it.each([9003, 9004])(`are read as jsonschema reads them, with ${PAIRS} pairs of the seed %i`, (seed) => {
    const pairs = randomPairs(PAIRS, seed);
    const verdicts = judged(pairs);
    const fits = ({ schema, value }: Pair) => fitsJsonSchema(value, parseWithSource(schema) as JsonSchema);
    const differing = pairs.filter((pair, i) => verdicts[i] !== null && fits(pair) !== verdicts[i]);
    expect(differing).toEqual([]);
    expect(verdicts.filter(Boolean).length).toBeGreaterThan(PAIRS / 4);
    expect(verdicts.filter((each) => each === false).length).toBeGreaterThan(PAIRS / 4);
  });

  it('keep the verdicts that the daily test reads', async () => {
    const lines = (await readFile(new URL('verdicts.jsonl', import.meta.url), 'utf8')).trim().split('\n');
    const stored = lines.map((line) => parseExactly(line) as [unknown, string, boolean]);
    const pairs = stored.map(([schema, value]) => ({ schema: exactJson(schema), value }));
    expect(judged(pairs)).toEqual(stored.map(([, , verdict]) => verdict));
  });
});
