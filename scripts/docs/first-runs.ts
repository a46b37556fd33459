/**
 * The runs that a newcomer makes first, as README and docs/getting-started.md tell of them. `npm run first-runs` makes
 * them and keeps their numbers in docs/first-runs.json; `npm run docs` writes these into the pages, at the marks
 * `<!-- run: NAME NUMBER -->`. Needs the compiled package; warm starts and kernels come from the cache if they are
 * there.
 */
import { spawnSync } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { machineText } from '../../bench/results.js';
import type { EvaluationEvent, Interval } from '../../src/base/core/evaluation.js';
import { readPage, root } from './pages.js';

const STORE = 'docs/first-runs.json';

interface FirstRun {
  readonly command: string;
  readonly seconds: number;
  /** The success on held-out tasks; absent for a command that trains several runs. */
  readonly scores?: {
    readonly before: number;
    readonly after: number;
    readonly interval: Interval;
    readonly tasks: number;
  };
}

interface FirstRuns {
  readonly date: string;
  readonly machine: string;
  readonly runs: Readonly<Record<string, FirstRun>>;
}

/** Runs a command of drmas and reads its events. @throws Error with its last lines if it fails */
function made(words: readonly string[], run: string): FirstRun {
  const started = performance.now();
  const { status, stdout, stderr } = spawnSync(
    process.execPath,
    [join(root, 'dist/src/cli/main.js'), ...words, '--run', run, '--json'],
    { cwd: root, encoding: 'utf8', maxBuffer: 2 ** 28 },
  );
  const seconds = Math.round((performance.now() - started) / 1e3);
  if (status !== 0) throw new Error(`drmas ${words.join(' ')} ended with ${status}: ${stderr.slice(-600)}`);
  const command = `drmas ${words.join(' ')}`;
  if (words[0] !== 'train') return { command, seconds };
  const evaluations = stdout
    .split('\n')
    .filter((line) => line.startsWith('{'))
    .map((line) => JSON.parse(line) as EvaluationEvent)
    .filter(({ type, split }) => type === 'evaluation' && split === 'test');
  const [first, last] = [evaluations[0], evaluations.at(-1)];
  if (first === undefined || last === undefined) throw new Error(`${command} evaluated nothing`);
  const { averageAtK: after, interval, tasks } = last;
  return {
    command,
    seconds,
    scores: { before: first.averageAtK, after, interval: { low: interval.low, high: interval.high }, tasks },
  };
}

function makeAll(): FirstRuns {
  const place = mkdtempSync(join(tmpdir(), 'drmas-first-'));
  try {
    const project = join(place, 'my-team');
    const init = spawnSync(process.execPath, [join(root, 'dist/src/cli/main.js'), 'init', project], {
      encoding: 'utf8',
    });
    if (init.status !== 0) throw new Error(init.stderr);
    return {
      date: new Date().toISOString().slice(0, 10),
      machine: machineText(),
      runs: {
        pair: made(['compare', 'repair'], join(place, 'pair')),
        shop: made(['train', 'examples/ai-sdk/recipe.ts'], join(place, 'shop')),
        init: { ...made(['train', join(project, 'team.ts')], join(place, 'init')), command: 'drmas train team.ts' },
      },
    };
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
  const { runs, machine } = JSON.parse(readPage(STORE)) as FirstRuns;
  const [name = '', number = ''] = words.split(' ');
  const run = runs[name];
  if (run === undefined) throw new Error(`${STORE} has no run '${name}'; it has ${Object.keys(runs).join(', ')}`);
  const texts: Record<string, string> = { seconds: `${run.seconds} s`, machine };
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

if (import.meta.url === `file://${process.argv[1]}`)
  writeFileSync(join(root, STORE), `${JSON.stringify(makeAll(), undefined, 2)}\n`);
