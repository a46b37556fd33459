/**
 * A run on PyTorch whose program or whose worker is killed at random moments goes on to the same bits, and leaves no
 * process behind. `DRMAS_TEST_KILLS=20` for more moments.
 */
import { type ChildProcess, spawn } from 'node:child_process';
import { createHash } from 'node:crypto';
import { mkdtemp, readdir, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { RandomStream } from '@drmas/engine/math';
import { describe, expect, it } from 'vitest';
import { stopwatch, takesTime } from '../support/time-and-chance.js';
import { temporaryRoot } from '../support/tiny-run.js';
import { childrenOf, isAlive } from './child-processes.js';
import { torchPython } from './torch-python.js';

const available = await torchPython();
const kills = Number(process.env.DRMAS_TEST_KILLS ?? 3);
const all = temporaryRoot();

const settings = {
  'warmStart.steps': 2,
  'training.steps': 6,
  'training.checkpointEvery': 1,
  'training.tasksPerStep': 4,
  'training.groupSize': 4,
  'evaluation.tasks': 4,
  'evaluation.samples': 1,
  'evaluation.every': 100,
};
const words = Object.entries(settings).flatMap(([key, value]) => ['--set', `${key}=${value}`]);

interface Program {
  readonly child: ChildProcess;
  readonly ended: Promise<{ readonly code: number | null; readonly output: string }>;
}

function drmas(...args: string[]): Program {
  const child = spawn(process.execPath, ['--import', 'tsx', 'src/cli/main.ts', ...args], {
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  let output = '';
  for (const stream of [child.stdout, child.stderr])
    stream.on('data', (chunk: Buffer) => {
      output += chunk.toString();
    });
  return { child, ended: new Promise((resolve) => child.once('close', (code) => resolve({ code, output }))) };
}

/** SHA-256 of each file of the last checkpoint that holds numbers. */
async function weightsOf(run: string): Promise<Record<string, string>> {
  const checkpoints = join(run, 'checkpoints');
  const last = (await readdir(checkpoints)).sort().at(-1) as string;
  const files = await readdir(join(checkpoints, last), { recursive: true });
  const hashes: Record<string, string> = {};
  for (const file of files.filter((name) => name.endsWith('.safetensors')).sort())
    hashes[`${last}/${file}`] = createHash('sha256')
      .update(await readFile(join(checkpoints, last, file)))
      .digest('hex');
  return hashes;
}

const checkpointsOf = (run: string) => readdir(join(run, 'checkpoints')).catch(() => [] as string[]);

const train = (run: string) => drmas('train', 'solo', '--run', run, '--device', 'torch-cpu', ...words);

describe.skipIf(!available || process.platform !== 'linux')('a run on PyTorch', () => {
  it('that is killed goes on to the same bits', async () => {
    const root = await mkdtemp(join(all, 'faults-')); // a test that is tried again begins anew
    const whole = join(root, 'whole');
    const seconds = stopwatch();
    const first = await train(whole).ended;
    expect(first.output).toContain('the run is in');
    const ms = 1000 * seconds();
    const expected = await weightsOf(whole);
    expect(Object.keys(expected).length).toBeGreaterThan(0);

    const random = new RandomStream('kills of runs on PyTorch', Number(process.env.DRMAS_TEST_SEED ?? 9003));
    for (let kill = 0; kill < kills; kill++) {
      const run = join(root, `killed-${kill}`);
      let program = train(run);
      const step = random.integer(0, 5);
      const moment = step === 0 ? ms * 0.5 * random.uniform() : (random.uniform() * ms) / 12;
      const ofWorker = kill % 2 === 0;
      // Moments are counted from checkpoints, since other programs may have the cores.
      let isOver = false;
      void program.ended.then(() => {
        isOver = true;
      });
      while (step > 0 && !isOver && (await checkpointsOf(run)).length < step) await takesTime(20);
      await takesTime(moment);
      const workers = await childrenOf(program.child.pid as number, 'drmas_torch');
      if (ofWorker) for (const pid of workers) process.kill(pid, 'SIGKILL');
      else program.child.kill('SIGKILL');
      const { code, output } = await program.ended;
      // A worker that is still importing PyTorch sees the end of its pipe afterwards.
      for (let tries = 0; tries < 600 && (await Promise.all(workers.map(isAlive))).includes(true); tries++)
        await takesTime(100);
      expect(await Promise.all(workers.map(isAlive)), `kill ${kill}`).not.toContain(true);
      if (ofWorker && workers.length > 0 && code !== 0)
        expect(output).toContain('the engine on PyTorch ended with SIGKILL');
      const there = await checkpointsOf(run);
      if (code !== 0) {
        program = there.length === 0 ? train(`${run}-again`) : drmas('resume', run);
        // A program that is killed between its last write and its end has nothing left to do.
        expect((await program.ended).output).toMatch(/the run is in|is complete: there is nothing to resume/);
      }
      expect(
        await weightsOf(there.length === 0 && code !== 0 ? `${run}-again` : run),
        `kill ${kill}: ${Math.round(moment)} ms after checkpoint ${step}`,
      ).toEqual(expected);
    }
  });
});
