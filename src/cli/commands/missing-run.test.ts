/** Each command whose argument or flag may be a run: a misspelt path names the runs beside it. */
import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { drmas } from '../../../test/support/command-line.js';
import { commands, shortNames } from './index.js';

let root: string;
beforeAll(async () => {
  root = await mkdtemp(join(tmpdir(), 'drmas-missing-'));
  for (const [name, record] of [
    ['first', 'recipe.json'],
    ['sweep', 'ablation.json'],
  ] as const) {
    await mkdir(join(root, name));
    await writeFile(join(root, name, record), '{}');
  }
});
afterAll(() => rm(root, { recursive: true }));

/** The words that a command needs besides a run. */
const needed: Readonly<Record<string, readonly string[]>> = {
  export: ['--to', 'exported'],
  plan: ['math', '--play'],
};
/** Other forms of commands that take a run. */
const more: readonly (readonly string[])[] = [
  ['serve', 'frist', '--follow'],
  ['report', 'frist', 'first'],
  ['doctor', 'verify', 'frist'],
];

const takesRun = (description: string) =>
  /\b(run|runs|ablation|comparison)\b/.test(description) && !/--recipes/.test(description);
const words = [...commands, ...shortNames].flatMap(({ name, arguments: given = [], flags }) => {
  const own = given.some(({ description, words: count }) => takesRun(description) && count !== 'any number');
  const from = Object.entries(flags ?? {}).some(([flag, { description }]) => flag === 'from' && takesRun(description));
  return [
    ...(own ? [[name, 'frist', ...(needed[name] ?? [])]] : []),
    ...(from && name !== 'resume' ? [[name, ...(needed[name] ?? []), '--from', 'frist']] : []),
  ];
});

describe('a run that is not there', () => {
  it('is asked of each command that takes one', () => {
    expect(words.map(([name]) => name).sort()).toEqual(
      expect.arrayContaining([
        'ablate',
        'chat',
        'evaluate',
        'export',
        'inspect',
        'plan',
        'resume',
        'runs',
        'serve',
        'watch',
      ]),
    );
  });

  it.each([...words, ...more].map((each) => [each.join(' '), each] as const))('%s', async (_, typed) => {
    const at = typed.map((word) => (word === 'frist' || word === 'first' ? join(root, word) : word));
    const { code, err } = await drmas(at);
    expect(err).toMatch(/^error: there is no .*; did you mean 'first'\? \(known: first, sweep\)$/m);
    expect(code).toBeGreaterThan(0);
  });
});
