/**
 * Runs the command line under faults and compares each run with an undisturbed one bit for bit: signals and kills at
 * random moments, a kill and a full disk at single calls, a small disk, files that vanish. Prints a table, and exits
 * with 1 if a run was lost or differs. `--short` takes a sample, `--seed` chooses others, `--only WORDS` takes the
 * faults with these words in their names.
 */
import { execFileSync } from 'node:child_process';
import {
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as wait } from 'node:timers/promises';
import { parseArgs } from 'node:util';
import { RandomStream } from '@drmas/engine/math';
import { killedEvaluate, killedLearn, killedServe } from './commands.js';
import { drmas, type Ended, type Environment, ended, fingerprint, isComplete, start } from './trial.js';

const { values } = parseArgs({
  options: {
    short: { type: 'boolean' },
    seed: { type: 'string', default: '1' },
    only: { type: 'string', default: '' },
  },
});
const short = values.short === true;
const root = mkdtempSync(join(tmpdir(), 'drmas-faults-'));
const environment: Environment = { DRMAS_CACHE: process.env.DRMAS_CACHE ?? join(root, 'cache') };
const random = new RandomStream('faults', Number(values.seed));

/** A test: its number of trials, in full and in short, and one trial, which throws if something was lost. */
interface Test {
  readonly name: string;
  readonly trials: readonly [full: number, short: number];
  trial(run: string, number: number): Promise<string | undefined>;
}

let expected = '';
let seconds = 0;
let calls = 0;

/** Finishes a started run without faults, and compares it. */
async function expectWhole(run: string): Promise<void> {
  for (let attempt = 0; !isComplete(run); attempt++) {
    const end = await ended(start(run, environment));
    if (attempt > 1 || end.code !== 0) throw new Error(`does not resume: ${end.code ?? end.signal} ${end.err.trim()}`);
  }
  if (fingerprint(run) !== expected) throw new Error('differs from an undisturbed run');
  const verified = await ended(drmas(['doctor', 'verify', run], environment));
  if (verified.code !== 0) throw new Error('drmas doctor verify finds damage');
}

/** Up to three times a signal at a random moment, then undisturbed to the end. */
const signalled = (signal: NodeJS.Signals) => async (run: string) => {
  const times = 1 + Math.floor(random.uniform() * 3);
  const codes: string[] = [];
  for (let i = 0; i < times && !isComplete(run); i++) {
    const child = start(run, environment);
    const end = ended(child);
    await wait(random.uniform() * seconds * 1000);
    child.kill(signal);
    const { code, signal: by } = await end;
    codes.push(String(code ?? by));
  }
  await expectWhole(run);
  return codes.join(' ');
};

/** A fault at one call that changes the disk, then undisturbed to the end. */
const injected = (kind: 'kill' | 'full') => async (run: string) => {
  const at = 1 + Math.floor(random.uniform() * calls);
  const fault = { DRMAS_FAULT_BELOW: run, DRMAS_FAULT_AT: String(at), DRMAS_FAULT_KIND: kind };
  const end = await ended(start(run, { ...environment, ...fault }, true));
  if (kind === 'full' && end.code !== 0) requireMessage(end, /ENOSPC/);
  await expectWhole(run);
  return `call ${at}`;
};

function requireMessage({ code, err }: Ended, message: RegExp): void {
  if (code !== 1 && code !== 2) throw new Error(`ended with ${code}`);
  if (!message.test(err)) throw new Error(`wrong message: ${JSON.stringify(err.slice(-200))}`);
}

/** Waits until a run has written its first checkpoint. */
async function untilCheckpoint(run: string): Promise<void> {
  for (let i = 0; i < 2000; i++) {
    try {
      if (readFileSync(join(run, 'events.jsonl'), 'utf8').includes('"type":"checkpoint"')) return;
    } catch {
      // not there yet
    }
    await wait(10);
  }
  throw new Error('no checkpoint was written');
}

async function smallDisk(run: string, number: number): Promise<string | undefined> {
  const disk = `${run}-disk`;
  mkdirSync(disk);
  try {
    execFileSync('mount', ['-t', 'tmpfs', '-o', `size=${40 * 2 ** number}k`, 'tmpfs', disk], { stdio: 'pipe' });
  } catch {
    return 'SKIPPED: no right to mount';
  }
  try {
    const inside = join(disk, 'run');
    const end = await ended(start(inside, environment));
    if (end.code !== 0) requireMessage(end, /ENOSPC/);
    execFileSync('mount', ['-o', 'remount,size=256m', disk]);
    await expectWhole(inside);
    return end.code === 0 ? 'large enough' : 'full';
  } finally {
    execFileSync('umount', [disk]);
  }
}

/** A command that makes new files, and where it makes them. */
type Making = (run: string) => { readonly words: readonly string[]; readonly made: string };

const traces = join(root, 'traces.jsonl');
const span = (id: number) => ({
  ...{ id: `${id}`, traceId: `${id}`, type: 'GENERATION', startTime: '2026-01-01T00:00:00Z', model: 'large' },
  input: [{ role: 'user', content: `${id}+1?` }],
  output: { role: 'assistant', content: `${id + 1}` },
  metadata: { attributes: { 'gen_ai.agent.name': 'solver' } },
});
const importing: Making = (run) => ({ words: ['import', traces, '--out', run, '--yes'], made: run });
const exporting: Making = (run) => ({
  words: ['export', join(root, 'whole'), '--agent', 'solver', '--to', join(run, 'model')],
  made: join(run, 'model'),
});

/** The files of a directory by name; files that drmas has not finished begin with `.tmp-`. */
function filesIn(directory: string): Record<string, string> {
  if (!existsSync(directory)) return {};
  const names = readdirSync(directory, { encoding: 'utf8' }).filter((name) => !name.startsWith('.tmp-'));
  return Object.fromEntries(names.map((name) => [name, readFileSync(join(directory, name), 'base64')]));
}

/**
 * A fault at one call of a command that makes files: each file is whole or missing, a full disk leaves none, and the
 * command works afterwards.
 */
const making = (kind: 'kill' | 'full', command: Making) => async (run: string, number: number) => {
  const right = `${run}-right`;
  for (const directory of [run, right]) mkdirSync(directory);
  const undisturbed = await ended(drmas(command(right).words, environment));
  if (undisturbed.code !== 0) throw new Error(`ends with ${undisturbed.code}: ${undisturbed.err}`);
  const whole = filesIn(command(right).made);
  const { words, made } = command(run);
  const fault = { DRMAS_FAULT_BELOW: run, DRMAS_FAULT_AT: String(number + 1), DRMAS_FAULT_KIND: kind };
  const end = await ended(drmas(words, { ...environment, ...fault }, true));
  for (const [name, content] of Object.entries(filesIn(made)))
    if (content !== whole[name]) throw new Error(`${name} is not whole`);
  if (kind === 'full' && end.code !== 0) {
    requireMessage(end, /ENOSPC/);
    const left = readdirSync(run);
    if (left.length > 0) throw new Error(`a full disk leaves ${left.join(', ')}`);
  }
  rmSync(made, { recursive: true, force: true });
  if (made === run) mkdirSync(run);
  const again = await ended(drmas(words, environment));
  if (again.code !== 0) throw new Error(`does not work afterwards: ${again.err}`);
  if (JSON.stringify(filesIn(made)) !== JSON.stringify(whole)) throw new Error('differs from an undisturbed one');
  return end.code === 0 ? 'no such call' : `call ${number + 1}`;
};

const around = {
  ...{ root, whole: join(root, 'whole'), environment, expectWhole },
  uniform: () => random.uniform(),
};

const tests: readonly Test[] = [
  { name: 'SIGKILL at random moments, up to three times', trials: [40, 2], trial: signalled('SIGKILL') },
  { name: 'SIGTERM at random moments, up to three times', trials: [30, 1], trial: signalled('SIGTERM') },
  { name: 'SIGINT at random moments, up to three times', trials: [30, 1], trial: signalled('SIGINT') },
  { name: 'SIGKILL in a call that changes the disk', trials: [60, 2], trial: injected('kill') },
  { name: 'half a write, then no space, at one call', trials: [60, 2], trial: injected('full') },
  { name: 'a small disk that is enlarged later', trials: [8, 1], trial: smallDisk },
  { name: 'SIGKILL in a call of import', trials: [12, 2], trial: making('kill', importing) },
  { name: 'no space in a call of import', trials: [12, 2], trial: making('full', importing) },
  { name: 'SIGKILL in a call of export', trials: [20, 2], trial: making('kill', exporting) },
  { name: 'no space in a call of export', trials: [20, 2], trial: making('full', exporting) },
  { name: 'SIGKILL of learn, up to twice', trials: [24, 2], trial: killedLearn(around) },
  { name: 'SIGKILL of evaluate', trials: [24, 1], trial: killedEvaluate(around) },
  { name: 'SIGKILL of serve, twice', trials: [20, 1], trial: killedServe(around, false) },
  { name: 'SIGKILL of serve --follow, twice', trials: [20, 1], trial: killedServe(around, true) },
  {
    name: 'a directory that is moved while it is written',
    trials: [4, 1],
    async trial(run) {
      const end = ended(start(run, environment));
      await untilCheckpoint(run);
      renameSync(run, `${run}-moved`);
      const { code } = await end;
      rmSync(run, { recursive: true, force: true });
      await expectWhole(`${run}-moved`);
      return String(code);
    },
  },
  {
    name: 'an event log that is deleted while it is written',
    trials: [4, 1],
    async trial(run) {
      // Enough steps that the run cannot be over when this program hears of the first checkpoint.
      const end = ended(start(run, environment, false, ['--set', 'training.steps=10000']));
      await untilCheckpoint(run);
      rmSync(join(run, 'events.jsonl'));
      requireMessage(await end, /events\.jsonl/);
      const refused = await ended(start(run, environment));
      requireMessage(refused, /events\.jsonl/);
      return undefined;
    },
  },
  {
    name: 'a second writer beside the first',
    trials: [4, 1],
    async trial(run) {
      const end = ended(start(run, environment));
      await untilCheckpoint(run);
      const second = await ended(drmas(['resume', run], environment));
      const first = await end;
      if (first.code !== 0) throw new Error(`the first ended with ${first.code}`);
      requireMessage(second, /is being written by process \d+|is complete/);
      await expectWhole(run);
      return undefined;
    },
  },
];

async function main(): Promise<number> {
  const chosen = tests.filter(({ name }) => name.includes(values.only));
  if (chosen.length === 0) throw new Error(`no fault has ${JSON.stringify(values.only)} in its name`);
  writeFileSync(traces, Array.from({ length: 40 }, (_, i) => `${JSON.stringify(span(i))}\n`).join(''));
  const whole = join(root, 'whole');
  const count = join(root, 'calls');
  for (const run of [join(root, 'cached'), whole]) {
    // The first run fills the caches; the others are compared with the second.
    const end = await ended(start(run, { ...environment, DRMAS_FAULT_BELOW: run, DRMAS_FAULT_COUNT: count }, true));
    if (end.code !== 0) throw new Error(`an undisturbed run ends with ${end.code}: ${end.err}`);
    seconds = end.seconds;
  }
  calls = Number(readFileSync(count, 'utf8'));
  expected = fingerprint(whole);
  console.log(
    `an undisturbed run: ${seconds.toFixed(1)} s, ${calls} calls that change the disk; seed ${values.seed}\n`,
  );
  console.log('| fault | tried | equal to the undisturbed run | lost |\n|---|---|---|---|');
  let lost = 0;
  for (const [index, { name, trials, trial }] of chosen.entries()) {
    const problems: string[] = [];
    const wanted = trials[short ? 1 : 0];
    let skipped = 0;
    for (let number = 0; number < wanted; number++) {
      const run = join(root, `${index}-${number}`);
      try {
        if ((await trial(run, number))?.startsWith('SKIPPED') === true) skipped++;
        rmSync(run, { recursive: true, force: true });
      } catch (error) {
        problems.push(`${run}: ${(error as Error).message}`);
      }
    }
    lost += problems.length;
    const tried = wanted - skipped;
    console.log(`| ${name} | ${tried === 0 ? 'skipped' : tried} | ${tried - problems.length} | ${problems.length} |`);
    for (const problem of problems) console.log(`  ${problem}`);
  }
  if (lost === 0) rmSync(root, { recursive: true, force: true });
  return lost === 0 ? 0 : 1;
}

process.exitCode = await main();
