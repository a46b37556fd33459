// @module-tag verify
/** A full disk at any call that changes it: the run ends with a named error, then resumes bit for bit. */
import { existsSync } from 'node:fs';
import { mkdtemp, readdir } from 'node:fs/promises';
import { join } from 'node:path';
import { systemClock } from '@drmas/engine/host';
import { nodeHost } from '@drmas/engine/platform';
import { beforeAll, expect, it } from 'vitest';
import { recipeJson } from '../../src/method/recipe/recipe.js';
import { RunDirectory } from '../../src/method/store/run-directory.js';
import { verifyRun } from '../../src/method/store/verify-run.js';
import { executeRun } from '../../src/runs/run/execute/execute-run.js';
import { type Fault, faultyFiles } from '../support/faulty-files.js';
import { eventsOf, filesOf, temporaryRoot, tinyRecipe, trainTiny } from '../support/tiny-run.js';

const root = temporaryRoot();
const recipe = tinyRecipe({ policies: { solver: { kl: { coefficient: 0.1 } } } }, [
  'training.steps=2',
  'training.checkpointEvery=1',
  'training.keepCheckpoints=1',
  'evaluation.every=2',
]);
const record = {
  version: 1 as const,
  recipe: { source: recipe.name, overrides: [], codeHash: '' },
  resolved: recipeJson(recipe),
  acceptedChanges: [],
};
let whole: RunDirectory;
let changes: number;

/** Trains from the last checkpoint if there is one, else from the beginning, like the command line. */
async function goOn(path: string, fault?: Fault): Promise<ReturnType<typeof faultyFiles>> {
  const faulty = faultyFiles(fault);
  const begun = existsSync(join(path, 'recipe.json'));
  const options = { files: faulty.files };
  const run = begun ? await RunDirectory.open(path, options) : await RunDirectory.create(path, record, options);
  await run.lock();
  try {
    const checkpoint = await run.latestCheckpoint();
    if (begun) await run.rewind(checkpoint);
    await executeRun(recipe, run, nodeHost({ threads: 1, ...options }), { checkpoint });
  } finally {
    await run.close();
  }
  return faulty;
}

async function expectWhole(path: string, what: string): Promise<void> {
  const run = await RunDirectory.open(path);
  expect(await eventsOf(run), what).toEqual(await eventsOf(whole));
  expect(await filesOf(run), what).toEqual(await filesOf(whole));
  expect(
    (await verifyRun(path)).filter(({ state }) => state === 'damaged'),
    what,
  ).toEqual([]);
  expect(
    (await readdir(path, { recursive: true })).filter((name) => name.includes('.tmp-')),
    what,
  ).toEqual([]);
}

beforeAll(async () => {
  whole = await trainTiny(root, recipe); // the warm start is in the cache now
  const path = join(root, 'counted');
  changes = (await goOn(path)).calls.length;
  await expectWhole(path, 'without a fault');
  whole = await RunDirectory.open(path);
});

/** Every fourth call fails, in one of two ways; every call in both ways with `DRMAS_FAULTS=all`. */
const kinds = [
  { lasting: true, half: true },
  { lasting: false, half: false },
] as const;
const every = process.env.DRMAS_FAULTS === 'all';

it.each([0, 1])(
  'a full disk at each call is survived (%i)',
  async (parity) => {
    expect(changes).toBeGreaterThan(40);
    for (let at = 1; at <= changes; at++) {
      if (!every && at % 8 !== 4 * parity) continue;
      const kind = kinds[parity] as (typeof kinds)[number];
      const path = join(await mkdtemp(join(root, 'full-')), 'run');
      const what = `call ${at} of ${changes}, ${JSON.stringify(kind)}`;
      const error = await goOn(path, { at, ...kind }).catch((caught: unknown) => caught);
      if (error instanceof Error) expect(error.message, what).toMatch(/ENOSPC/);
      const events = await RunDirectory.open(path).then(
        (run) => run.events(),
        () => [],
      );
      const last = events.at(-1);
      // Where only the digest of the ended log could not be written, the run is complete.
      if (last?.type === 'run.finished' && last.reason === 'completed') expect(at, what).toBe(changes);
      else await goOn(path);
      await expectWhole(path, what);
    }
  },
  300_000,
);

it('a clock that jumps back and forth changes no bit', async () => {
  let calls = 0;
  const jump = () => (calls++ % 3 === 0 ? -1e6 : 1e6);
  const clock = {
    now: () => new Date(systemClock.now().getTime() + 1000 * jump()),
    seconds: () => systemClock.seconds() + jump(),
  };
  const path = join(root, 'jumps');
  const run = await RunDirectory.create(path, record, { clock });
  await executeRun(recipe, run, nodeHost({ threads: 1, clock }));
  await run.close();
  await expectWhole(path, 'jumping clock');
});
