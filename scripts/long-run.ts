/**
 * `npm run verify -- long`: thousands of steps of a tiny team. Prints memory, open handles, the time of a step and
 * the size of its files, by quarters, and exits with 1 if the second half grows. It reads /proc, so it runs only on
 * Linux.
 */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, readdirSync, readFileSync, rmSync, statSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';
import { median } from '@drmas/engine/math';
import { runProgram, UsageError } from './support/run-program.js';

const MAIN = fileURLToPath(new URL('../dist/src/cli/main.js', import.meta.url));
const SETTINGS = [
  ...['warmStart.steps=50', 'training.tasksPerStep=2', 'training.groupSize=8'],
  ...['training.checkpointEvery=50', 'training.keepCheckpoints=3', 'training.keepEpisodes=10'],
  ...['evaluation.every=500', 'evaluation.tasks=8', 'evaluation.samples=2'],
].flatMap((override) => ['--set', override]);
/** The allowed growth of a run's resident memory from its third quarter to its last, in MB. */
const MOST_GROWTH_MB = 16;

const USAGE = `usage: npm run verify -- long [options]

  --steps 3000     of the recipe repair, with 2 tasks of 8 episodes each
  --threads 1
`;

/** The process at the end of a step. */
interface Sample {
  readonly residentMB: number;
  readonly handles: number;
  readonly seconds: number;
  readonly eventBytes: number;
}

async function main(): Promise<number> {
  const { values } = parseArgs({
    options: { steps: { type: 'string', default: '3000' }, threads: { type: 'string', default: '1' } },
  });
  const steps = Number(values.steps);
  if (!Number.isInteger(steps) || steps < 1000) throw new UsageError('--steps takes a number from 1000 on');
  const root = mkdtempSync(join(tmpdir(), 'drmas-long-'));
  const run = join(root, 'run');
  const samples = await train(run, steps, values.threads);
  console.log('| steps | resident, median | handles | s a step, median | events a step |\n|---|---|---|---|---|');
  const quarters = [0, 1, 2, 3].map((i) => samples.slice((i * steps) / 4, ((i + 1) * steps) / 4));
  for (const [i, quarter] of quarters.entries()) {
    const of = (key: keyof Sample) => quarter.map((sample) => sample[key]);
    const range = `${(i * steps) / 4 + 1} to ${((i + 1) * steps) / 4}`;
    const handles = `${Math.min(...of('handles'))} to ${Math.max(...of('handles'))}`;
    const bytes = of('eventBytes').reduce((sum, value) => sum + value, 0) / quarter.length;
    const cells = [`${median(of('residentMB')).toFixed(0)} MB`, handles, median(of('seconds')).toFixed(4)];
    console.log(`| ${[range, ...cells, `${(bytes / 1000).toFixed(2)} kB`].join(' | ')} |`);
  }
  const written = (folder: string) => `${(sizeOf(join(run, folder)) / 1e6).toFixed(1)} MB`;
  console.log(
    `\nepisodes of each tenth step: ${written('episodes')}, last three checkpoints: ${written('checkpoints')}`,
  );
  const [third, fourth] = [quarters[2], quarters[3]].map((quarter = []) => median(quarter.map((s) => s.residentMB)));
  const growth = (fourth as number) - (third as number);
  const handles = Math.max(...samples.slice(steps / 2).map((s) => s.handles));
  const early = Math.max(...samples.slice(0, steps / 2).map((s) => s.handles));
  const flat = growth <= MOST_GROWTH_MB && handles <= early + 2;
  console.log(`${flat ? 'flat' : 'GROWS'}: ${growth.toFixed(1)} MB from the third quarter to the last`);
  rmSync(root, { recursive: true, force: true });
  return flat ? 0 : 1;
}

/** Trains and looks at the process at the end of each step. */
async function train(run: string, steps: number, threads: string): Promise<Sample[]> {
  const words = ['train', 'repair', '--run', run, ...SETTINGS, '--set', `training.steps=${steps}`];
  const child = spawn(process.execPath, [MAIN, ...words, '--threads', threads, '--json'], {
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  const closed = once(child, 'close');
  const samples: Sample[] = [];
  let bytes = 0;
  let last = performance.now();
  for await (const line of createInterface({ input: child.stdout })) {
    bytes += line.length + 1;
    if (!line.includes('"type":"step"')) continue;
    const now = performance.now();
    const resident = /^VmRSS:\s+(\d+) kB/m.exec(readFileSync(`/proc/${child.pid}/status`, 'utf8'))?.[1];
    samples.push({
      residentMB: Number(resident) / 1000,
      handles: readdirSync(`/proc/${child.pid}/fd`).length,
      seconds: (now - last) / 1000,
      eventBytes: bytes,
    });
    bytes = 0;
    last = now;
  }
  const [code] = await closed;
  if (code !== 0) throw new Error(`the run ended with ${code}; it is kept in ${run}`);
  return samples;
}

function sizeOf(folder: string): number {
  return readdirSync(folder, { recursive: true, encoding: 'utf8' })
    .map((name) => statSync(join(folder, name)))
    .reduce((sum, entry) => sum + (entry.isFile() ? entry.size : 0), 0);
}

await runProgram(USAGE, main);
