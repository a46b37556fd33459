import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { EmbeddedBackend } from '@drmas/engine/embedded';
import type { RunEvent } from '@drmas/engine/events';
import { createWasmKernels } from '@drmas/engine/kernels';
import { afterEach, beforeEach, expect, it } from 'vitest';
import { operations } from '../../../../recipes/repair/commands.js';
import repair from '../../../../recipes/repair/recipe.js';
import { train } from '../../../../src/runs/run/api.js';
import { timeForMishaps } from '../../../../test/support/time-and-chance.js';
import { temporaryRoot } from '../../../../test/support/tiny-run.js';
import { engineHere, Gate, tabFiles } from './engine-here.js';
import type { NameTry, ShownEpisode } from './protocol.js';
import { repairOverrides, repairRecipe } from './repair-recipe.js';
import { trainInTab } from './tab-run.js';

const root = temporaryRoot();
const settings = {
  estimator: 'grpo',
  seed: 5,
  set: [
    'warmStart.steps=6',
    'warmStart.batch=8',
    'training.steps=2',
    'training.tasksPerStep=3',
    'training.groupSize=4',
  ],
};

const { DRMAS_KERNELS } = process.env;
beforeEach(() => {
  process.env.DRMAS_KERNELS = 'wasm';
});
afterEach(() => {
  if (DRMAS_KERNELS === undefined) delete process.env.DRMAS_KERNELS;
  else process.env.DRMAS_KERNELS = DRMAS_KERNELS;
});

/** The parts of two runs that must be equal: all but times and the fields that need files. */
function numbersOf(events: readonly RunEvent[]): unknown[] {
  return events.flatMap((event) => {
    if (event.type !== 'step' && event.type !== 'warmup') return [];
    const { time: _time, seconds: _seconds, ...rest } = event;
    return ['phaseSeconds' in rest ? { ...rest, phaseSeconds: undefined } : rest];
  });
}

async function inTab(gate = new Gate(), warm?: ReadonlyMap<string, Uint8Array>, names?: readonly string[]) {
  const kernels = createWasmKernels(new Uint8Array(await readFile('packages/engine/native/drmas.wasm')));
  const events: RunEvent[] = [];
  const episodes = new Map<number, ShownEpisode>();
  const all: NameTry[] = [];
  const receiver = {
    onEvent: (event: RunEvent) => void events.push(event),
    onEpisode: (step: number, episode: ShownEpisode) => void episodes.set(step, episode),
    onTries: (tries: readonly NameTry[]) => void all.push(...tries),
    onProgress: () => {},
  };
  const backend = new EmbeddedBackend(engineHere(kernels, gate), tabFiles(warm ?? new Map()));
  const done = trainInTab(
    repairRecipe({ ...settings, names }),
    backend,
    receiver,
    new AbortController().signal,
    warm && 'warm',
  ).finally(() => backend.dispose());
  return { done, events, episodes, tries: all };
}

it('computes the results of the command line, bit for bit', async () => {
  const { done, events, episodes } = await inTab();
  await done;
  const node = await train(repair, { run: join(root, 'node'), set: repairOverrides(settings), threads: 1 });
  const steps = numbersOf(events);
  expect(steps).toEqual(numbersOf(node.events));
  expect(steps).toHaveLength(1 + 2);
  for (const { turns } of episodes.values()) expect(turns.map(({ agent }) => agent)).toEqual(['coder', 'fixer']);
  expect(episodes.size).toBeGreaterThan(0);
});

it('computes nothing while it is paused, and the same afterwards', { tags: 'verify' }, async () => {
  const gate = new Gate();
  gate.close();
  const { done, events } = await inTab(gate);
  await timeForMishaps(50);
  expect(events).toEqual([]);
  gate.open();
  await done;
  const undisturbed = await inTab();
  await undisturbed.done;
  expect(numbersOf(events)).toEqual(numbersOf(undisturbed.events));
});

it('goes on from the weights of a warm start as if it had trained them, under any names', {
  tags: 'verify',
}, async () => {
  const run = join(root, 'warm');
  await train(repair, { run, set: [...repairOverrides(settings), 'training.steps=0'], threads: 1 });
  const weights = new Map<string, Uint8Array>();
  for (const name of ['config.json', 'drmas_tokenizer.json', 'model.safetensors'])
    weights.set(`warm/${name}`, await readFile(join(run, 'checkpoints/step-000000/coder', name)));
  const trained = await inTab();
  await trained.done;
  const loaded = await inTab(new Gate(), weights);
  await loaded.done;
  const steps = numbersOf(loaded.events);
  expect(steps).toHaveLength(2);
  expect(steps).toEqual(numbersOf(trained.events).slice(1));
  expect(loaded.tries).toEqual(trained.tries);

  const before = operations.map(({ names }) => names[2] as string);
  const other = [...'abcdefghijkl'].map((letter) => `x${letter}`);
  const renamed = await inTab(new Gate(), weights, other);
  await renamed.done;
  expect(operations.map(({ names }) => names[2] as string)).toEqual(other);
  expect(numbersOf(renamed.events)).toEqual(steps);
  repairRecipe({ ...settings, names: before }); // the toolbox of this process as it was
});

it('refuses an override that the recipe does not have', () => {
  expect(() => repairRecipe({ ...settings, set: ['training.stepz=1'] })).toThrow(/training\.stepz/);
});
