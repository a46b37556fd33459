/**
 * `npm run fuzz`: changes right inputs at random and gives them to every reader of outside data. Each must
 * take it or refuse it by one of drmas's errors, within bounds of time and memory. An input that does not is stored in
 * test/fuzz/corpus.jsonl, which `npm test` replays.
 */
import { fork } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';
import { runProgram, UsageError } from '../../scripts/support/run-program.js';
import { repeatedly, stopwatch } from '../support/time-and-chance.js';
import type { Job, Report } from './child.js';
import { inputOf } from './mutate.js';
import { addToCorpus, complaintAbout, corpus } from './target.js';
import { targets } from './targets/index.js';

/** Real time after which an input counts as hanging, even on a busy machine. */
const HANG_SECONDS = 60;
/** After this many crashes of the process, the remaining inputs are skipped. */
const MOST_DEATHS = 20;

const USAGE = `usage: npm run fuzz -- [options]

  --share 0.02     a part of the inputs (default: all)
  --target NAME    one target of ${targets.map(({ name }) => name).join(', ')}
  --seed N         chooses other inputs (default: 1)
  --replay NAME    one stored input of test/fuzz/corpus.jsonl
`;

/** Takes the inputs of all jobs, in a process of its own. Returns how many failed, and the jobs that are left. */
function takeInputs(
  jobs: readonly Job[],
  seed: number,
  marker: string,
): Promise<{ failed: number; left: readonly Job[] }> {
  writeFileSync(marker, `${jobs[0]?.name} ${jobs[0]?.from} `.padEnd(60));
  const child = fork(
    fileURLToPath(new URL('child.ts', import.meta.url)),
    [JSON.stringify(jobs), String(seed), marker],
    {
      execArgv: ['--import', 'tsx', '--max-old-space-size=1200'],
      stdio: ['ignore', 'ignore', 'pipe', 'ipc'],
    },
  );
  let failed = 0;
  let output = '';
  const fail = (name: string, number: number, complaint: string) => {
    failed++;
    keep(name, seed, number, complaint);
  };
  child.stderr?.on('data', (text) => {
    output = `${output}${text}`.slice(-2000);
  });
  child.on('message', (message: Report) => {
    if ('complaint' in message) fail(message.name, message.number, message.complaint);
    else
      console.log(
        `${message.name.padEnd(18)} ${countOf(jobs, message.name)} inputs ${message.seconds.toFixed(1).padStart(8)} s`,
      );
  });
  const seconds = stopwatch();
  let [seen, since] = ['', seconds()];
  const endWatch = repeatedly(1000, () => {
    const now = readFileSync(marker, 'utf8');
    if (now !== seen) [seen, since] = [now, seconds()];
    else if (seconds() - since > HANG_SECONDS) {
      output = `it hung for ${HANG_SECONDS} s`;
      child.kill('SIGKILL');
    }
  });
  return new Promise((resolve) => {
    child.on('exit', (code, signal) => {
      endWatch();
      if (code === 0) return resolve({ failed, left: [] });
      const [name = '', number = ''] = readFileSync(marker, 'utf8').split(' ');
      fail(name, Number(number), `ended the process (${code ?? signal}): ${output}`);
      const at = jobs.findIndex((job) => job.name === name);
      const rest = jobs.slice(at).map((job, i) => (i === 0 ? { ...job, from: Number(number) + 1 } : job));
      resolve({ failed, left: failed > MOST_DEATHS ? [] : rest });
    });
  });
}

const countOf = (jobs: readonly Job[], name: string) => String(jobs.find((job) => job.name === name)?.to).padStart(8);

/** Stores an input that failed. */
function keep(name: string, seed: number, number: number, complaint: string): void {
  const target = targets.find((each) => each.name === name);
  if (target === undefined) throw new Error(complaint);
  const input = `${name}--${seed}-${number}`;
  addToCorpus(input, inputOf(target, seed, number));
  console.log(`${input}\n  ${complaint}\n  again: npm run fuzz -- --replay ${input}`);
}

async function replay(name: string): Promise<boolean> {
  const input = corpus().get(name);
  if (input === undefined) throw new UsageError(`test/fuzz/corpus.jsonl has no input '${name}'`);
  const target = targets.find((each) => name.startsWith(`${each.name}--`));
  if (target === undefined) throw new UsageError(`${name}: no target has this name`);
  const complaint = await complaintAbout(target, input);
  console.log(`${name}: ${complaint ?? 'nothing is wrong with it'}`);
  return complaint === undefined;
}

await runProgram(USAGE, async () => {
  const { values } = parseArgs({
    options: {
      seed: { type: 'string', default: '1' },
      share: { type: 'string', default: '1' },
      target: { type: 'string' },
      replay: { type: 'string' },
    },
  });
  if (values.replay !== undefined) return (await replay(values.replay)) ? 0 : 1;
  const chosen = targets.filter(({ name }) => values.target === undefined || name === values.target);
  if (chosen.length === 0) throw new UsageError(`no target is called ${values.target}`);
  const [seed, share] = [Number(values.seed), Number(values.share)];
  if (!Number.isInteger(seed) || seed < 0)
    throw new UsageError(`--seed: expected a whole number, got '${values.seed}'`);
  if (!(share > 0 && share <= 1))
    throw new UsageError(`--share: expected a number above 0 up to 1, got '${values.share}'`);
  const work = mkdtempSync(join(tmpdir(), 'drmas-fuzz-'));
  let left: readonly Job[] = chosen.map(({ name, inputs }) => ({ name, from: 0, to: Math.ceil(inputs * share) }));
  const inputs = left.reduce((sum, { to }) => sum + to, 0);
  let failed = 0;
  while (left.length > 0) {
    const taken = await takeInputs(left, seed, join(work, 'marker'));
    failed += taken.failed;
    left = taken.left;
  }
  rmSync(work, { recursive: true });
  console.log(`${inputs} inputs, ${failed} failed`);
  return failed === 0 ? 0 : 1;
});
