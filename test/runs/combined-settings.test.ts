// @module-tag verify
/** Settings that are drawn together: a recipe is refused before any work, or runs, and resumes bit for bit. */
import { RecipeError } from '@drmas/engine/errors';
import { RandomStream } from '@drmas/engine/math';
import { lora } from '@drmas/engine/model';
import { expect, it } from 'vitest';
import type { RecipeInput } from '../../src/method/recipe/define.js';
import { frozen } from '../../src/method/recipe/frozen.js';
import { choiceRecipe, game, type Round, richReward } from '../support/choice-run.js';
import { numericSettings, type Setting, wordSettings } from '../support/recipe-settings.js';
import {
  eventsOf,
  filesOf,
  resumedTiny,
  temporaryRoot,
  tinyModel,
  tinyRecipe,
  trainTiny,
} from '../support/tiny-run.js';

const root = temporaryRoot();

/** A team with its models, and the settings that its recipes draw from. */
interface Way {
  readonly assign: Readonly<Record<string, string>>;
  readonly recipe: (overrides: readonly string[]) => ReturnType<typeof tinyRecipe>;
}

const failingSometimes = (chance: number) => {
  if (chance < 0.12) throw new Error('on purpose');
};
const played = (reward: (rounds: readonly Round[], chance: number) => unknown): Way => ({
  assign: { first: 'first', second: 'second' },
  recipe: (overrides) =>
    choiceRecipe(
      {
        team: game({ between: failingSometimes, reward: reward as typeof richReward }),
        training: { steps: 4, tasksPerStep: 2, groupSize: 4, checkpointEvery: 2 },
        evaluation: { every: 2, tasks: 2 },
      } as Partial<RecipeInput>,
      overrides,
    ),
});
const written = (assign: Way['assign'], changes: object): Way => ({
  assign,
  recipe: (overrides) => tinyRecipe(changes as Partial<RecipeInput>, overrides),
});

const [own, shared] = [
  { solver: 'solver', verifier: 'verifier' },
  { solver: 'shared', verifier: 'shared' },
];
const adapters = lora(tinyModel, { rank: 2 });
const ways: readonly Way[] = [
  played(richReward),
  played((rounds, chance) => -chance - rounds.length),
  played((rounds) => rounds[0]?.first === 'a'),
  played(() => 1),
  written(own, { assign: 'separate' }),
  written(own, { model: adapters }),
  written(shared, { assign: 'shared' }),
  written(shared, { assign: 'shared', model: adapters }),
  written(shared, { assign: 'shared', policies: { shared: { agentAdapters: { rank: 2 } } } }),
  written({ solver: 'one', verifier: 'one' }, { assign: { solver: 'one', verifier: frozen(tinyModel) } }),
];

/** Settings of other models and servers, of limits that each episode would break, and those that the ways choose. */
const elsewhere = new RegExp(
  [
    String.raw`\b(model|agentAdapters|backend|sampler|device|precision|isolate|promptLimit|stopWhen|port)\b`,
    String.raw`^(gateway\.|warmStart\.(steps|batch)|training\.(steps|checkpointEvery|maxTurns|maxOutcomeBytes)|seed)`,
    'maxTokens|candidates|TimeoutMs|Retries',
  ].join('|'),
);
/** Settings without which others are refused: a pattern of the setting, and the settings that are added. */
const company: readonly (readonly [RegExp, string, string])[] = [
  [/^(policies\.\w+\.kl)\./, '$1.coefficient', '0.3'],
  [/^(policies\.\w+\.kl\.controller)\.type=adaptive/, '$1.target', '0.1'],
  [/^(policies\.\w+)\.entropySchedule/, '$1.entropyCoefficient', '0.1'],
  [/^advantage\.type=partition/, 'advantage.score', 'turn'],
  [/^advantage\.type=partition/, 'advantage.mean', 'agent'],
  [/^advantage\.type=partition/, 'advantage.spread', 'agent'],
];
const LARGE = /^(training\.(tasksPerStep|groupSize|concurrency)|evaluation\.)|epochs$|miniBatches$/;

/** An estimator, a setting of its own, and six others of the recipe, as overrides. */
function drawnSettings(random: RandomStream, { assign }: Way): string[] {
  const pick = <T>(list: readonly T[]): T => list[Math.floor(random.uniform() * list.length)] as T;
  const all = [...numericSettings(assign), ...wordSettings(assign)].filter(({ path }) => !elsewhere.test(path));
  const drawn = new Map<string, string>();
  const add = ({ path, chosen, values }: Setting | undefined = { path: '', chosen: [], values: [] }) => {
    const fitting = values.filter((value) => !(LARGE.test(path) && Number(value) > 8));
    if (fitting.length === 0) return;
    const pairs = [...chosen, `${path}=${pick(fitting)}`].map((text) => text.split('=') as [string, string]);
    if (pairs.some(([key, value]) => (drawn.get(key) ?? value) !== value)) return; // another member of the union
    for (const [key, value] of pairs) drawn.set(key, value);
  };
  add(all.find(({ path }) => path === 'advantage.type'));
  add(pick(all.filter(({ chosen }) => chosen[0] === `advantage.type=${drawn.get('advantage.type')}`)));
  for (let n = 0; n < 6; n++) add(pick(all));
  for (const [pattern, key, value] of company)
    for (const text of [...drawn].map(([path, chosen]) => `${path}=${chosen}`)) {
      const [match] = pattern.exec(text) ?? [];
      const needed = match?.replace(pattern, key);
      if (needed !== undefined && !drawn.has(needed)) drawn.set(needed, value);
    }
  return [...drawn].map(([key, value]) => `${key}=${value}`);
}

const DRAWS = 40;

/** Refusals that only the turns of a run can cause. */
const foundLater = /give each call of an agent its round/; // `advantage-alignment`: the writers have none

let ran = 0;

it.each(Array.from({ length: DRAWS }, (_, n) => n))('draw %i', { timeout: 120_000 }, async (n) => {
  const way = ways[n % ways.length] as Way;
  const overrides = drawnSettings(
    new RandomStream('combined settings', Number(process.env.DRMAS_TEST_SEED ?? 1), n),
    way,
  );
  const outcome = (async () => {
    const recipe = way.recipe(overrides);
    return { recipe, run: await trainTiny(root, recipe) };
  })();
  const { recipe, run } = await outcome.catch((error: Error) => {
    if (!(error instanceof RecipeError) && !foundLater.test(error.message))
      throw new Error(overrides.join(' '), { cause: error });
    return {} as Partial<Awaited<typeof outcome>>;
  });
  if (recipe === undefined || run === undefined) return;
  const events = await eventsOf(run);
  expect(events.at(-1), overrides.join(' ')).toMatchObject({ type: 'run.finished', reason: 'completed', steps: 4 });
  expect(JSON.stringify(events, (_, value) => (Number.isNaN(value) ? 'not a number' : value))).not.toContain(
    'not a number',
  );
  const resumed = await resumedTiny(root, recipe, 2);
  expect(await eventsOf(resumed), overrides.join(' ')).toEqual(events);
  expect(await filesOf(resumed), overrides.join(' ')).toEqual(await filesOf(run));
  ran++;
});

it('most draws are accepted', () => {
  expect(ran).toBeGreaterThan(DRAWS / 2);
});
