/** Runs of a study share a card that Ray only believes in: a job starts when its share is free, and sees the card. */
import { join } from 'node:path';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { drmas } from '../support/command-line.js';
import { type CompiledProgram, compiledProgram } from '../support/compiled-program.js';
import { pythonEnvironment } from '../support/python-environment.js';
import { takesTime } from '../support/time-and-chance.js';
import { temporaryRoot } from '../support/tiny-run.js';
import { lines, twoVariants, writeTinyStudy } from '../support/tiny-study.js';
import { RayCluster } from './cluster.js';

const environment = await pythonEnvironment({
  name: 'ray',
  requirements: new URL('requirements.txt', import.meta.url),
  what: 'Ray (380 MB)',
});
const available = !('unavailable' in environment);

const root = temporaryRoot();
let program: CompiledProgram;
let cluster: RayCluster | undefined;
beforeAll(async () => {
  if (!available) return;
  program = await compiledProgram();
  cluster = await RayCluster.start(environment.python, { cpus: 4, gpus: 1 });
});
afterAll(async () => {
  await program?.remove();
  expect(await cluster?.stop()).toEqual([]);
});

it.skipIf(!available)('two runs of half a card each are on it at a time, although four CPUs are free', async () => {
  if (cluster === undefined) throw new Error('there is no cluster');
  const file = await writeTinyStudy(root);
  const command = `sh -c 'echo card:$CUDA_VISIBLE_DEVICES; exec node ${program.main} "$@"' drmas`;
  const there = ['--ray', cluster.url, '--store', join(root, 'store'), '--ray-command', command];
  const study = drmas([
    ...['ablate', file, ...twoVariants(2), '--parallel', '4', '--run', join(root, 'study')],
    ...[...there, '--gpus-per-run', '0.5'],
  ]);
  let [isOver, most] = [false, 0];
  const ended = study.finally(() => {
    isOver = true;
  });
  while (!isOver) {
    const running = (await cluster.jobs().catch(() => [])).filter(({ status }) => status === 'RUNNING');
    most = Math.max(most, running.length);
    await takesTime(100);
  }
  const { code, out } = await ended;
  expect(code).toBe(0);
  expect(lines(out).at(-1).runs).toHaveLength(4);
  expect(most).toBe(2);
  const jobs = await cluster.jobs();
  expect(jobs).toHaveLength(4);
  for (const { submission_id: id } of jobs) expect(await cluster.printed(id)).toMatch(/^card:0$/m);
});
