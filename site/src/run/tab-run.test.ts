import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, it } from 'vitest';
import repair from '../../../recipes/repair/recipe.js';
import type { RunEvent } from '../../../src/base/core/events.js';
import { EmbeddedBackend } from '../../../src/engine/embedded/embedded-backend.js';
import { createWasmKernels } from '../../../src/engine/tensor/wasm/wasm.js';
import { train } from '../../../src/runs/run/api.js';
import { temporaryRoot } from '../../../test/support/tiny-run.js';
import { engineHere, Gate } from './engine-here.js';
import { noFiles } from './no-files.js';
import { repairOverrides, repairRecipe } from './repair-recipe.js';
import type { ShownEpisode } from './shown-episode.js';
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

async function inTab(gate = new Gate()) {
  const kernels = createWasmKernels(new Uint8Array(await readFile('native/drmas.wasm')));
  const events: RunEvent[] = [];
  const episodes = new Map<number, ShownEpisode>();
  const receiver = {
    onEvent: (event: RunEvent) => void events.push(event),
    onEpisode: (step: number, episode: ShownEpisode) => void episodes.set(step, episode),
    onProgress: () => {},
  };
  const backend = new EmbeddedBackend(engineHere(kernels, gate), noFiles);
  const done = trainInTab(repairRecipe(settings), backend, receiver, new AbortController().signal).finally(() =>
    backend.dispose(),
  );
  return { done, events, episodes };
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

it('computes nothing while it is paused, and the same afterwards', async () => {
  const gate = new Gate();
  gate.close();
  const { done, events } = await inTab(gate);
  await new Promise((resolve) => setTimeout(resolve, 50));
  expect(events).toEqual([]);
  gate.open();
  await done;
  const undisturbed = await inTab();
  await undisturbed.done;
  expect(numbersOf(events)).toEqual(numbersOf(undisturbed.events));
});

it('refuses an override that the recipe does not have', () => {
  expect(() => repairRecipe({ ...settings, set: ['training.stepz=1'] })).toThrow(/training\.stepz/);
});
