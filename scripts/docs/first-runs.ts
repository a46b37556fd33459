/**
 * The runs that a newcomer makes first, as the pages tell of them. `npm run first-runs` makes those on toys, and
 * `npm run first-runs -- real` those on a pretrained model, which take minutes. `npm run first-runs -- read RUN NAME`
 * takes a run that was made on another machine, from its directory. docs/first-runs.json keeps their numbers; `npm run
 * docs` writes these into the pages, at the marks `<!-- run: NAME NUMBER -->`. Needs the compiled package; warm starts
 * and kernels come from the cache if they are there.
 */
import { spawn, spawnSync } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import type { Interval, RunEvent } from '@drmas/engine/events';
import { isScored } from '@drmas/engine/nouns';
import { peakResidentBytes } from '../../research/bench/measure/processor-time.js';
import { machineText } from '../../research/bench/results.js';
import { RunDirectory } from '../../src/method/store/run-directory.js';
import { fetchModel } from '../support/smollm2.js';
import { readPage, root } from './pages.js';

const STORE = 'docs/first-runs.json';
/** How often the memory of a run is looked up. */
const LOOK_MS = 500;

interface FirstRun {
  readonly command: string;
  readonly date: string;
  readonly machine: string;
  readonly seconds: number;
  /** The most memory of the process, in bytes; absent in older results. */
  readonly bytes?: number;
  /** The success on held-out tasks; absent for a command that trains several runs. */
  readonly scores?: {
    readonly before: number;
    readonly after: number;
    readonly interval: Interval;
    readonly tasks: number;
  };
}

type FirstRuns = Readonly<Record<string, FirstRun>>;

/** Runs a command of drmas and reads the run's events. @throws Error with its last lines if it fails */
async function made(words: readonly string[], run: string): Promise<FirstRun> {
  const started = performance.now();
  const child = spawn(process.execPath, [join(root, 'dist/src/cli/main.js'), ...words, '--run', run, '--json'], {
    cwd: root,
    stdio: ['ignore', 'ignore', 'pipe'],
  });
  let bytes = 0;
  const look = setInterval(() => {
    bytes = Math.max(bytes, peakResidentBytes(child.pid ?? 0) ?? 0);
  }, LOOK_MS);
  const ended = new Promise<number | null>((resolve) => child.on('close', resolve));
  const [stderr, status] = await Promise.all([text(child.stderr), ended]);
  clearInterval(look);
  const seconds = Math.round((performance.now() - started) / 1e3);
  if (status !== 0) throw new Error(`drmas ${words.join(' ')} ended with ${status}: ${stderr.slice(-600)}`);
  const command = `drmas ${words.join(' ')}`;
  const date = new Date().toISOString().slice(0, 10);
  const seen = { command, date, machine: machineText(), seconds, bytes };
  if (words[0] !== 'train') return seen;
  return { ...seen, scores: scoresIn(await (await RunDirectory.open(run)).events()) };
}

/** @throws Error if no held-out tasks were evaluated */
function scoresIn(events: readonly RunEvent[]): NonNullable<FirstRun['scores']> {
  const evaluations = events.flatMap((event) =>
    event.type === 'evaluation' && event.split === 'test' && isScored(event) ? [event] : [],
  );
  const [first, last] = [evaluations[0], evaluations.at(-1)];
  if (first === undefined || last === undefined) throw new Error('the run evaluated nothing');
  const { averageAtK: after, interval, tasks } = last;
  return { before: first.averageAtK, after, interval: { low: interval.low, high: interval.high }, tasks };
}

/** A run of `drmas train` on another machine, from its directory. @throws Error if it did not end */
async function readRun(path: string): Promise<FirstRun> {
  const run = await RunDirectory.open(path);
  const events = await run.events();
  const started = events.find((event) => event.type === 'run.started');
  const finished = events.find((event) => event.type === 'run.finished');
  if (started === undefined || finished === undefined) throw new Error(`${path}: the run has not ended`);
  const { source, overrides } = run.record.recipe;
  const settings = overrides.map((one) => `--set ${one.replace(/(?<=base\.path=).*/, 'FILE')}`);
  const { isa, cores } = started.hardware;
  return {
    command: ['drmas', 'train', source, ...settings].join(' '),
    date: started.time.slice(0, 10),
    machine: `${isa.replace('wgsl, ', '')}, ${cores} cores`,
    seconds: Math.round(finished.seconds),
    scores: scoresIn(events),
  };
}

async function onToys(place: string): Promise<FirstRuns> {
  const project = join(place, 'my-team');
  const init = spawnSync(process.execPath, [join(root, 'dist/src/cli/main.js'), 'init', project], { encoding: 'utf8' });
  if (init.status !== 0) throw new Error(init.stderr);
  return {
    pair: await made(['compare', 'repair'], join(place, 'pair')),
    shop: await made(['train', 'examples/ai-sdk/recipe.ts'], join(place, 'shop')),
    init: { ...(await made(['train', join(project, 'team.ts')], join(place, 'init'))), command: 'drmas train team.ts' },
  };
}

/** The runs of `npm run real` with seed 1, and a longer one. The first makes the warm start. */
async function onRealModel(place: string): Promise<FirstRuns> {
  const file = await fetchModel();
  const run = async (name: string, ...settings: string[]) => {
    const words = ['train', 'words', '--seed', '1', ...settings.flatMap((setting) => ['--set', setting])];
    const result = await made([...words, '--set', `model.base.path=${file}`], join(place, name));
    return { ...result, command: `drmas ${words.join(' ')} --set model.base.path=FILE` };
  };
  await run('warm', 'training.steps=1');
  return {
    'real-drmas': await run('drmas', 'advantage.type=drmas'),
    'real-grpo': await run('grpo', 'advantage.type=grpo'),
    'real-long': await run('long', 'advantage.type=drmas', 'training.steps=60'),
  };
}

async function makeAll(which: string | undefined): Promise<FirstRuns> {
  const place = mkdtempSync(join(tmpdir(), 'drmas-first-'));
  try {
    return await (which === 'real' ? onRealModel(place) : onToys(place));
  } finally {
    rmSync(place, { recursive: true });
  }
}

const percent = (share: number, digits: number) => (100 * share).toFixed(digits);

/**
 * A number of a first run, in the words of a page: `shop after` is the success after training with its interval.
 * @throws Error for a run or a number that is not there
 */
export function firstRunNumber(words: string): string {
  const runs = JSON.parse(readPage(STORE)) as FirstRuns;
  const [name = '', number = ''] = words.split(' ');
  const run = runs[name];
  if (run === undefined) throw new Error(`${STORE} has no run '${name}'; it has ${Object.keys(runs).join(', ')}`);
  const texts: Record<string, string> = {
    seconds: `${run.seconds} s`,
    minutes: `${(run.seconds / 60).toFixed(1)} minutes`,
    machine: run.machine,
    date: run.date,
  };
  if (run.bytes !== undefined) texts.memory = `${(run.bytes / 1e9).toFixed(1)} GB`;
  if (run.scores !== undefined) {
    const { before, after, interval, tasks } = run.scores;
    const { low, high } = interval;
    texts.before = `${percent(before, 1)} %`;
    texts.after = `${percent(after, 1)} % [${percent(low, 0)}, ${percent(high, 0)}]`;
    texts.tasks = String(tasks);
  }
  const text = texts[number];
  if (text === undefined) throw new Error(`a first run has no '${number}'; it has ${Object.keys(texts).join(', ')}`);
  return text;
}

if (import.meta.url === `file://${process.argv[1]}`) {
  const [what, run = '', name = ''] = process.argv.slice(2);
  const more = what === 'read' ? { [name]: await readRun(run) } : await makeAll(what);
  const runs = { ...(JSON.parse(readPage(STORE)) as FirstRuns), ...more };
  writeFileSync(join(root, STORE), `${JSON.stringify(runs, undefined, 2)}\n`);
}
