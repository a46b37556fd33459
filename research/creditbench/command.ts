/** `npm run findings -- creditbench`: how credit in teams of language models is measured. */
import { fork } from 'node:child_process';
import { once } from 'node:events';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';
import { duration } from '@drmas/engine/host';
import { UsageError } from '../../scripts/support/run-program.js';
import { commitOf, root } from '../harness/run-job.js';
import { baselineCells, creditCell, estimatorNames, familyOf, openNamed, SEEDS, trainingCell } from './cells.js';
import { decisionFamilies } from './decisions.js';
import type { Played } from './direct-credit.js';
import { type Family, families } from './families.js';
import { addResult, type Cell, cellName, type PartName, parts, readPart, type TrainingResult } from './results.js';
import { serveFamilies } from './server.js';
import { rowOfFile } from './submission.js';

const usage = `npm run findings -- creditbench [credit | decisions | training | baseline]... [options]

  Measures estimators on eight families of teams whose right credit is known. credit: how well advantages agree with
  the right credit. decisions: the same in ${decisionFamilies.length} more families, in which agents decide who acts next.
  training: what a fixed budget of training reaches. baseline: levels of a baseline at several starts
  (research/plans/baseline.md). Interrupt it at any time: the same command goes on. npm run findings -- --page then writes docs/creditbench.md.

  --family ID        only this family: ${[...families, ...decisionFamilies].map(({ id }) => id).join(', ')}
  --estimator NAME   only this estimator, with choices if any: rloo,byAgent=true
                     (give --family and --estimator again for more)
  --difficulty X     another value of the families' knobs than the usual one
  --seeds N          the first N of the ${SEEDS.length} seeds (default: 10)
  --seed N           one seed instead, for trying out
  --rate X           another learning rate of training, for trying out; nothing is stored
  --threads N        trainings at once, each in a process with one thread (default: 1)
  --list             how much is done; runs nothing
  --repeat           run stored cells again, and compare them bit for bit with what is stored
  --serve PORT       offer the families over HTTP, for trainers in other languages
  --validate FILE    check a submission, and print its row
`;

const say = (line: string) => process.stdout.write(`${line}\n`);

interface Settings {
  readonly work: readonly { readonly part: PartName; readonly cells: readonly Cell[] }[];
  readonly threads: number;
  readonly rate: number | undefined;
}

export async function creditbench(words: readonly string[]): Promise<number> {
  if (words[0] === TRAINER) return trainForParent();
  const { values, positionals } = parseArgs({
    args: [...words],
    allowPositionals: true,
    options: {
      family: { type: 'string', multiple: true, default: [] },
      estimator: { type: 'string', multiple: true, default: [] },
      difficulty: { type: 'string' },
      seeds: { type: 'string', default: '10' },
      seed: { type: 'string' },
      rate: { type: 'string' },
      threads: { type: 'string', default: '1' },
      list: { type: 'boolean', default: false },
      repeat: { type: 'boolean', default: false },
      serve: { type: 'string' },
      validate: { type: 'string' },
      help: { type: 'boolean', default: false },
    },
  });
  if (values.help) {
    process.stdout.write(usage);
    return 0;
  }
  if (values.validate !== undefined) {
    say(await rowOfFile(values.validate));
    return 0;
  }
  const controller = new AbortController();
  for (const name of ['SIGINT', 'SIGTERM'] as const) process.once(name, () => controller.abort(new Error(name)));
  if (values.serve !== undefined) {
    const server = await serveFamilies(number('serve', values.serve));
    say(`http://127.0.0.1:${server.port}`);
    await new Promise<void>((resolve) => controller.signal.addEventListener('abort', () => resolve()));
    await server.close();
    return 0;
  }
  const settings: Settings = {
    work: partsOf(positionals).map((part) => ({
      part,
      cells:
        part === 'baseline'
          ? baselineCells(seedsOf(values))
          : cellsOf(values, part === 'decisions' ? decisionFamilies : families),
    })),
    threads: number('threads', values.threads),
    rate: values.rate === undefined ? undefined : number('rate', values.rate),
  };
  if (values.list) return list(settings);
  if (values.repeat) return repeat(settings, controller.signal);
  try {
    for (const { part, cells } of settings.work) {
      if (part === 'credit' || part === 'decisions') await creditPart(part, cells, controller.signal);
      else await trainingPart(part, cells, settings, controller.signal);
    }
  } catch (error) {
    if (!controller.signal.aborted) throw error;
    say('interrupted; run the same command again to continue');
    return 130;
  }
  return 0;
}

function number(name: string, text: string): number {
  const value = Number(text);
  if (text === '' || !Number.isFinite(value) || value < 0)
    throw new UsageError(`--${name}: expected a number, got '${text}'`);
  return value;
}

function partsOf(names: readonly string[]): PartName[] {
  const unknown = names.find((name) => !(name in parts));
  if (unknown !== undefined)
    throw new UsageError(`there is no part '${unknown}': expected ${Object.keys(parts).join(', ')}`);
  return names.length === 0 ? ['credit', 'training'] : (names as PartName[]);
}

interface Chosen {
  readonly family: readonly string[];
  readonly estimator: readonly string[];
  readonly difficulty?: string;
  readonly seeds: string;
  readonly seed?: string;
}

const seedsOf = ({ seeds, seed }: Chosen): readonly number[] =>
  seed === undefined ? SEEDS.slice(0, number('seeds', seeds)) : [number('seed', seed)];

/** The chosen cells, seed by seed, so that work that is cut short has whole pairs. */
function cellsOf(values: Chosen, all: readonly Family[]): Cell[] {
  const chosen = values.family.length === 0 ? all : values.family.map((id) => asked(() => familyOf(id)));
  const estimators = values.estimator.length === 0 ? estimatorNames : values.estimator;
  for (const name of estimators) asked(() => openNamed(name));
  const difficulty = values.difficulty === undefined ? undefined : number('difficulty', values.difficulty);
  return seedsOf(values).flatMap((seed) =>
    chosen.flatMap((family) =>
      estimators.map(
        (estimator): Cell => ({ family: family.id, estimator, seed, difficulty: difficulty ?? family.knob.usual }),
      ),
    ),
  );
}

/** The result of a function whose errors are the caller's wrong words. */
function asked<Result>(of: () => Result): Result {
  try {
    return of();
  } catch (error) {
    throw new UsageError(error instanceof Error ? error.message : String(error));
  }
}

/** The files that decide the bits of a result. */
const ours = ['game', 'families', 'recipe', 'direct-credit', 'cells', 'decisions'].map(
  (name) => `research/creditbench/${name}.ts`,
);
const DECISIVE = ['src', 'packages/engine', 'package-lock.json', ...ours];
const maker = () => ({ commit: commitOf(DECISIVE) });

async function pendingOf(part: PartName, cells: readonly Cell[]): Promise<readonly Cell[]> {
  const done = await readPart(root, part);
  return cells.filter((cell) => !done.has(cellName(cell)));
}

/** Says how far the work is, and how long the rest will take. */
function progress(part: PartName, all: number) {
  const started = performance.now();
  let done = 0;
  return (cell: Cell, outcome: string) => {
    done++;
    const left = ((performance.now() - started) / 1000 / done) * (all - done);
    say(`${part} ${done}/${all}  ${cellName(cell)}  ${outcome}, about ${duration(left)} left`);
  };
}

async function creditPart(part: 'credit' | 'decisions', cells: readonly Cell[], signal: AbortSignal): Promise<void> {
  const todo = await pendingOf(part, cells);
  const tell = progress(part, todo.length);
  const made = maker();
  let episodes = new Map<string, Played[]>();
  let before = '';
  for (const cell of todo) {
    signal.throwIfAborted();
    const group = `${cell.family} ${cell.seed}`;
    if (group !== before) episodes = new Map();
    before = group;
    const result = creditCell(cell, made, episodes);
    await addResult(root, part, result);
    tell(
      cell,
      result.refused ??
        Object.values(result.stages)
          .map(({ cosine }) => cosine.toFixed(2))
          .join(' '),
    );
    await new Promise((resolve) => setImmediate(resolve)); // lets an interruption in
  }
}

type Train = (cell: Cell) => Promise<TrainingResult>;

async function trainingPart(
  part: 'training' | 'baseline',
  cells: readonly Cell[],
  { threads, rate }: Settings,
  signal: AbortSignal,
): Promise<void> {
  const todo = rate === undefined ? [...(await pendingOf(part, cells))] : [...cells];
  const tell = progress(part, todo.length);
  const work = async (train: Train) => {
    for (let cell = todo.shift(); cell !== undefined; cell = todo.shift()) {
      signal.throwIfAborted();
      const result = await train(cell);
      if (rate === undefined) await addResult(root, part, result);
      tell(
        cell,
        result.refused ?? `${result.curve.map((score) => score.toFixed(2)).join(' ')} ${result.origin.seconds} s`,
      );
    }
  };
  if (threads <= 1) {
    const made = maker();
    return work((cell) => trainingCell(cell, made, signal, rate));
  }
  const trainers = Array.from({ length: Math.min(threads, todo.length) }, () => startTrainer(rate, signal));
  try {
    await Promise.all(trainers.map(({ train }) => work(train)));
  } finally {
    for (const { end } of trainers) end();
  }
}

/** The word with which this program starts processes of its own that train. */
const TRAINER = 'train-for-parent';

/** A process that trains one cell at a time: in one process, trainings would share the thread of their JavaScript. */
function startTrainer(rate: number | undefined, signal: AbortSignal): { readonly train: Train; end(): void } {
  const program = fileURLToPath(new URL('../main.ts', import.meta.url));
  const child = fork(program, ['creditbench', TRAINER], { execArgv: ['--import', 'tsx'] });
  const ended = once(child, 'exit').then(([code, name]) => {
    throw new Error(`a training process ended with ${name ?? code}`);
  });
  ended.catch(() => {}); // it also ends when nothing waits for it
  const stop = () => void child.kill('SIGINT');
  signal.addEventListener('abort', stop);
  return {
    train: async (cell) => {
      child.send({ cell, rate });
      const [result] = await Promise.race([once(child, 'message'), ended]);
      return result as TrainingResult;
    },
    end() {
      signal.removeEventListener('abort', stop);
      if (child.connected) child.disconnect();
    },
  };
}

/** Trains the cells that the parent process sends, until it disconnects or a signal ends it. */
async function trainForParent(): Promise<number> {
  const controller = new AbortController();
  for (const name of ['SIGINT', 'SIGTERM', 'disconnect'])
    process.once(name, () => controller.abort(new Error(`${name} ended the training`)));
  const { signal } = controller;
  const made = maker();
  try {
    for (;;) {
      const [{ cell, rate }] = await once(process, 'message', { signal });
      process.send?.(await trainingCell(cell, made, signal, rate));
    }
  } catch (error) {
    if (!signal.aborted) throw error;
    return 0;
  }
}

async function list({ work }: Settings): Promise<number> {
  for (const { part, cells } of work) {
    const left = (await pendingOf(part, cells)).length;
    say(`${part}: ${cells.length - left} of ${cells.length} cells`);
  }
  return 0;
}

async function repeat({ work }: Settings, signal: AbortSignal): Promise<number> {
  let differing = 0;
  for (const { part, cells } of work) {
    const stored = await readPart(root, part);
    for (const cell of cells) {
      const before = stored.get(cellName(cell));
      if (before === undefined) continue;
      const again =
        part === 'credit' || part === 'decisions'
          ? creditCell(cell, maker(), new Map())
          : await trainingCell(cell, maker(), signal);
      const bits = (result: object) => JSON.stringify({ ...result, origin: undefined });
      const isSame = bits(before) === bits(again);
      if (!isSame) differing++;
      say(`${part} ${cellName(cell)}: ${isSame ? 'the same bits' : 'DIFFERS'}`);
    }
  }
  return differing === 0 ? 0 : 1;
}
