import { createHash } from 'node:crypto';
import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { gzipSync } from 'node:zlib';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { foldedText, drmas as typed } from '../../../test/support/command-line.js';

let root: string;
beforeAll(async () => {
  root = await mkdtemp(join(tmpdir(), 'drmas-inspect-'));
});
afterAll(() => rm(root, { recursive: true }));

const drmas = (...words: string[]) => typed(words);

const episode = (id: string, sample: number, reward: number, penalty = 0) => {
  const turn = (agent: string, turn: number) => ({ agent, turn, penalty, reward: reward - penalty });
  return { task: { id }, sample, score: { team: reward }, turns: [turn('solver', 0), turn('verifier', 1)] };
};

it("reads a run's directory, steps apart, and says in sentences what matters", async () => {
  const run = join(root, 'run');
  await mkdir(join(run, 'episodes'), { recursive: true });
  const write = (name: string, rows: unknown[]) =>
    writeFile(join(run, 'episodes', name), rows.map((row) => `${JSON.stringify(row)}\n`).join(''));
  await write('step-000001.jsonl', [episode('t', 0, 1), episode('t', 1, 0)]);
  await write('step-000002.jsonl', [episode('t', 0, 1), episode('t', 1, 1, 0.1)]);
  await write('evaluation-000000.jsonl', [episode('other', 0, 1)]);
  const { code, out } = await drmas('inspect', run, '--estimator', 'grpo,drmas');
  expect(code).toBe(0);
  expect(out).toMatch(/8 turns of 4 episodes in 2 groups, 2 agents/);
  expect(out).toMatch(/mixed outcomes +1 +50\.0 %/);
  expect(out).toMatch(/1 of 2 groups \(50\.0 %\) differ by penalties only/);
  expect(out.split('\n').every((line) => line.length <= 80)).toBe(true);
  const json = JSON.parse((await drmas('inspect', run, '--json', '--estimator', 'rloo')).out);
  expect(json).toMatchObject({ files: 2, turns: 8, estimators: { rloo: { solver: {}, verifier: {} } } });
  expect(Object.keys(json.estimators)).toEqual(['rloo']);
});

it('takes field names, and answers wrong ones with exit code 2', async () => {
  const file = join(root, 'log.jsonl');
  await writeFile(file, '{"q":"x","points":1}\n{"q":"x","points":0}\n');
  expect((await drmas('inspect', file, '--task', 'q', '--reward', 'points')).out).toMatch(/2 turns .* in 1 group,/);
  expect(await drmas('inspect', file, '--task', 'q', '--reward', 'pints')).toMatchObject({
    code: 2,
    err: expect.stringMatching(/log\.jsonl:1: pints: expected a number, got nothing; the row has \w+, /),
  });
  expect(await drmas('inspect', join(root, 'nowhere'))).toMatchObject({
    code: 2,
    err: expect.stringMatching(/no such file/),
  });
  expect((await drmas('inspect', file, '--estimator', 'gae')).code).toBe(2);
});

it('names the file and the first line not read where a gzipped log is damaged or cut off', async () => {
  /** 60,000 characters that hardly compress, so that a line has some 30,000 bytes. */
  const long = (text: string) =>
    Array.from({ length: 500 }, (_, i) => createHash('sha512').update(`${text} ${i}`).digest('hex').slice(0, 120)).join(
      '',
    );
  const row = (points: number) => `${JSON.stringify({ q: long(`row ${points}`), points })}\n`;
  const packed = gzipSync(row(1) + row(0));
  const damaged = Buffer.from(packed);
  damaged.fill(0xff, 1000, 1200); // in the first line, whatever a decoder gives out before it notices
  for (const [bytes, line, reason] of [
    [packed.subarray(0, -100), 2, 'unexpected end of file'],
    [damaged, 1, '.*'],
    [Buffer.from('{"q":"x","points":1}'), 1, 'incorrect header check'],
  ] as const) {
    const file = join(root, 'log.jsonl.gz');
    await writeFile(file, bytes);
    const { code, err } = await drmas('inspect', file, '--task', 'q', '--reward', 'points');
    expect(code).toBe(2);
    expect(err).toMatch(new RegExp(`log\\.jsonl\\.gz:${line}: damaged gzip: ${reason}\\n`));
  }
});

it('says of runs without training episodes that they have none yet, and of a folder of runs which to name', async () => {
  const study = join(root, 'study');
  const run = join(study, 'drmas-1');
  await mkdir(join(run, 'episodes'), { recursive: true });
  await writeFile(join(run, 'recipe.json'), '{}');
  await writeFile(join(run, 'events.jsonl'), '{"type":"run.started"}\n');
  expect(await drmas('inspect', run)).toMatchObject({ code: 2, err: `error: ${run} has no training episodes yet\n` });
  expect((await drmas('inspect', study)).err).toBe(`error: ${run} has no training episodes yet\n`);
  await writeFile(
    join(run, 'episodes', 'step-000001.jsonl'),
    [1, 0].map((reward, sample) => JSON.stringify(episode('t', sample, reward))).join('\n'),
  );
  const only = await drmas('inspect', study);
  expect(only).toMatchObject({ code: 0, out: expect.stringMatching(foldedText(run)) });
  await mkdir(join(study, 'grpo-1'));
  await writeFile(join(study, 'grpo-1', 'recipe.json'), '{}');
  expect(await drmas('inspect', study)).toMatchObject({
    code: 2,
    err: `error: ${study} is a folder of runs; inspect one of them, such as ${run}\n`,
  });
});
