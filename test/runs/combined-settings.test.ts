// @module-tag verify
/** Settings that are drawn together: a recipe is refused before any work, or runs, and resumes bit for bit. */
import { RecipeError } from '@drmas/engine/errors';
import { RandomStream } from '@drmas/engine/math';
import { expect, it } from 'vitest';
import { decoders, drawnSettings, foundLater, tables, type Way } from '../support/drawn-settings.js';
import { eventsOf, filesOf, resumedTiny, temporaryRoot, trainTiny } from '../support/tiny-run.js';

const root = temporaryRoot();
const ways = [...tables, ...decoders];
const DRAWS = 48;

let ran = 0;

it.each(Array.from({ length: DRAWS }, (_, n) => n))('draw %i', async (n) => {
  const way = ways[n % ways.length] as Way;
  const overrides = drawnSettings(
    new RandomStream('combined settings', Number(process.env.DRMAS_TEST_SEED ?? 1), n),
    way,
  );
  const drawn = `${way.name}: ${overrides.join(' ')}`;
  const outcome = (async () => {
    const recipe = way.recipe(overrides);
    return { recipe, run: await trainTiny(root, recipe) };
  })();
  const { recipe, run } = await outcome.catch((error: Error) => {
    if (!(error instanceof RecipeError) && !foundLater.test(error.message)) throw new Error(drawn, { cause: error });
    return {} as Partial<Awaited<typeof outcome>>;
  });
  if (recipe === undefined || run === undefined) return;
  const events = await eventsOf(run);
  expect(events.at(-1), drawn).toMatchObject({ type: 'run.finished', reason: 'completed', steps: 4 });
  expect(JSON.stringify(events, (_, value) => (Number.isNaN(value) ? 'not a number' : value))).not.toContain(
    'not a number',
  );
  const resumed = await resumedTiny(root, recipe, 2);
  expect(await eventsOf(resumed), drawn).toEqual(events);
  expect(await filesOf(resumed), drawn).toEqual(await filesOf(run));
  ran++;
});

it('most draws are accepted', () => {
  expect(ran).toBeGreaterThan(DRAWS / 2);
});
