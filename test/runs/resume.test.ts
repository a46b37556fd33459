import { appendFile, cp, mkdir, mkdtemp, readFile, rm, truncate, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { RunEvent } from '@drmas/engine/events';
import { type Clock, type RunListener, systemClock } from '@drmas/engine/host';
import { nodeHost } from '@drmas/engine/platform';
import { beforeAll, describe, expect, it, vi } from 'vitest';
import type { RecipeInput } from '../../src/method/recipe/define.js';
import type { Recipe } from '../../src/method/recipe/recipe.js';
import { RunDirectory } from '../../src/method/store/run-directory.js';
import { executeRun } from '../../src/runs/run/execute/execute-run.js';
import {
  createRun,
  digitTeam,
  eventsOf,
  filesOf,
  temporaryRoot,
  tinyRecipe,
  trainTiny,
  useCache,
} from '../support/tiny-run.js';

const root = temporaryRoot();
const recipe = tinyRecipe();
let whole: RunDirectory;
beforeAll(async () => {
  whole = await trainTiny(root, recipe);
});

async function expectWhole(path: string): Promise<void> {
  const run = await RunDirectory.open(path);
  expect(await eventsOf(run)).toEqual(await eventsOf(whole));
  // A checkpoint of an interruption, between two due ones, may stay.
  expect(await filesOf(run)).toMatchObject(await filesOf(whole));
}

/** Resumes as the command line does: from the last checkpoint, or from the beginning if there is none. */
async function resume(
  path: string,
  how: { signal?: AbortSignal; recipe?: Recipe; clock?: Clock; listener?: RunListener } = {},
) {
  const run = await RunDirectory.open(path, { listeners: how.listener ? [how.listener] : [] });
  const checkpoint = await run.latestCheckpoint();
  await run.rewind(checkpoint);
  await executeRun(how.recipe ?? recipe, run, nodeHost({ threads: 1, ...how }), { checkpoint });
}

describe('a run that is interrupted', () => {
  /** A moment at which Ctrl-C comes, and the checkpoint that the run then leaves. */
  interface Moment {
    readonly name: string;
    readonly step: number | undefined;
    readonly press: (interrupt: () => void) => { recipe?: Recipe; clock?: Clock; listener?: RunListener };
  }
  const nth = (n: number, act: () => void) => {
    let calls = 0;
    return () => {
      if (++calls === n) act();
    };
  };
  const atTrace = (n: number) => (interrupt: () => void) => {
    const { train, test } = recipe.tasks;
    const count = nth(n, interrupt);
    const trace: NonNullable<typeof train.trace> = (random, split) => {
      if (split === 'train') count();
      return train.trace?.(random, split) as ReturnType<NonNullable<typeof train.trace>>;
    };
    return { recipe: { ...recipe, tasks: { train: { ...train, trace }, test } } };
  };
  const atPlay = (n: number) => (interrupt: () => void) => {
    const count = nth(n, interrupt);
    const play: typeof digitTeam.play = (context) => {
      count();
      return digitTeam.play(context);
    };
    return { recipe: { ...recipe, team: { ...recipe.team, play: play as Recipe['team']['play'] } } };
  };
  const atClock = (n: number) => (interrupt: () => void) => {
    const count = nth(n, interrupt);
    const seconds = () => {
      count();
      return systemClock.seconds();
    };
    return { clock: { ...systemClock, seconds } };
  };
  const atEvent = (type: RunEvent['type'], n: number) => (interrupt: () => void) => {
    const count = nth(n, interrupt);
    return { listener: { event: (event: RunEvent) => (event.type === type ? count() : undefined) } };
  };

  /** The demonstrations that the check of a recipe draws before the run begins. */
  const CHECKED_TRACES = 2000;

  // In this order on one and the same run: an evaluation plays 6 episodes, a step 8.
  const moments: Moment[] = [
    { name: 'in the warm start', step: undefined, press: atTrace(CHECKED_TRACES + 30) },
    { name: 'in the first evaluation', step: 0, press: atPlay(3) },
    { name: 'in the first step', step: 0, press: atPlay(6 + 5) },
    { name: 'in the second step', step: 1, press: atPlay(6 + 8 + 5) },
    { name: 'before the update of the second step', step: 2, press: atClock(5) },
    { name: 'in the evaluation after it', step: 2, press: atPlay(4) },
    { name: 'while its checkpoint is written', step: 2, press: atEvent('evaluation', 1) },
    { name: 'as soon as it goes on', step: 2, press: atEvent('checkpoint', 1) },
    { name: 'after the third step', step: 3, press: atEvent('step', 1) },
    { name: 'in the last evaluation', step: 4, press: atPlay(8 + 2) },
  ];

  it(`goes on as if nothing had happened: ${moments.map(({ name }) => name).join(', ')}`, {
    tags: 'verify',
  }, async () => {
    useCache(await mkdtemp(join(root, 'empty-cache-'))); // so that there is a warm start to interrupt
    const { path } = await createRun(root, recipe);
    for (const { name, step, press } of moments) {
      const controller = new AbortController();
      const reason = new Error(`interrupted ${name}`);
      const pressed = press(() => controller.abort(reason));
      await expect(resume(path, { ...pressed, signal: controller.signal }), name).rejects.toBe(reason);
      const run = await RunDirectory.open(path);
      expect((await run.latestCheckpoint())?.step, name).toBe(step);
      expect((await run.events()).at(-1), name).toMatchObject({ type: 'run.finished', reason: 'stopped' });
    }
    await resume(path);
    await expectWhole(path);
  });
});

describe('a run that is interrupted in its first step', () => {
  it.each<[string, Partial<RecipeInput>, string[]]>([
    [
      'with warm-started references and critics',
      {
        advantage: { type: 'gae' },
        policies: { solver: { kl: { coefficient: 0.1, in: 'reward' } }, verifier: { kl: { coefficient: 0.1 } } },
      },
      [],
    ],
    ['without a warm start', {}, ['warmStart=null']],
  ])('%s: goes on from a checkpoint of step 0 bit for bit', { tags: 'verify' }, async (_, changes, overrides) => {
    const changed = tinyRecipe(changes, ['training.steps=2', ...overrides]);
    const expected = await trainTiny(root, changed);
    const { path } = await createRun(root, changed);
    const controller = new AbortController();
    let played = 0;
    const play: Recipe['team']['play'] = (context) => {
      if (++played === 6 + 3) controller.abort(new Error('enough'));
      return changed.team.play(context);
    };
    const interrupted = { ...changed, team: { ...changed.team, play } };
    await expect(resume(path, { recipe: interrupted, signal: controller.signal })).rejects.toThrow('enough');
    const run = await RunDirectory.open(path);
    expect(await run.latestCheckpoint()).toMatchObject({ step: 0 });
    expect((await run.events()).filter(({ type }) => type === 'evaluation')).toHaveLength(1);
    await resume(path, { recipe: changed });
    expect(await eventsOf(await RunDirectory.open(path))).toEqual(await eventsOf(expected));
    expect(await filesOf(await RunDirectory.open(path))).toMatchObject(await filesOf(expected));
  });
});

describe('a run that is killed', () => {
  it('in the middle of writing goes on from its last checkpoint', async () => {
    const path = join(await mkdtemp(join(root, 'killed-')), 'run');
    await cp(whole.path, path, { recursive: true });
    await rm(join(path, 'checkpoints', 'step-000004'), { recursive: true });
    await appendFile(join(path, 'events.jsonl'), '{"type":"step","step":5,"age');
    await writeFile(join(path, 'episodes', 'step-000005.jsonl'), '{"task":');
    const torn = join(path, 'checkpoints', '.tmp-step-000004-x', 'solver');
    await mkdir(torn, { recursive: true });
    await writeFile(join(torn, 'model.safetensors'), 'half');
    await resume(path);
    await expectWhole(path);
    await expect(readFile(join(torn, 'model.safetensors'))).rejects.toThrow(/ENOENT/);
  });

  it('before its first checkpoint begins anew', { tags: 'verify' }, async () => {
    const path = join(await mkdtemp(join(root, 'killed-')), 'run');
    await cp(whole.path, path, { recursive: true });
    for (const name of ['step-000002', 'step-000004']) await rm(join(path, 'checkpoints', name), { recursive: true });
    await truncate(join(path, 'events.jsonl'), 700);
    await resume(path);
    await expectWhole(path);
  });
});

describe('a run that is resumed with other kernels', () => {
  it('is refused and left as it is, unless that is accepted, which is a warning in its log', {
    tags: 'verify',
  }, async () => {
    const path = join(await mkdtemp(join(root, 'kernels-')), 'run');
    await cp(whole.path, path, { recursive: true });
    const began = (await whole.events()).find((event) => event.type === 'run.started');
    const was = `${began?.hardware.kernels} (${began?.hardware.isa})`;
    await rm(join(path, 'checkpoints', 'step-000004'), { recursive: true });
    const goOn = async (acceptChanges: boolean) => {
      const run = await RunDirectory.open(path);
      const checkpoint = await run.latestCheckpoint();
      await run.rewind(checkpoint);
      await executeRun(recipe, run, nodeHost({ threads: 1 }), { checkpoint, acceptChanges });
      return run;
    };
    vi.stubEnv('DRMAS_KERNELS', 'wasm');
    try {
      await expect(goOn(false)).rejects.toThrow(`was started with ${was} kernels, this machine has wasm (`);
      expect(await (await RunDirectory.open(path)).events()).toEqual(await whole.events());
      const events = await (await goOn(true)).events();
      expect(events.filter(({ type }) => type === 'warning')).toEqual([
        expect.objectContaining({ code: 'run.kernels', message: expect.stringContaining(was) }),
      ]);
      expect(events.at(-1)).toMatchObject({ reason: 'completed' });
    } finally {
      vi.unstubAllEnvs();
    }
  });
});
