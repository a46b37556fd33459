/** Recipes whose settings are drawn together, for teams of several kinds. */
import type { RandomStream } from '@drmas/engine/math';
import { choiceTable, lora } from '@drmas/engine/model';
import type { FailureReason, Task } from '@drmas/engine/nouns';
import type { RecipeInput } from '../../src/method/recipe/define.js';
import { frozen } from '../../src/method/recipe/frozen.js';
import type { Recipe } from '../../src/method/recipe/recipe.js';
import { EpisodeFailure } from '../../src/teams/rollout/episode-failure.js';
import type { Team } from '../../src/teams/team/team.js';
import { choiceRecipe, game, type Round, richReward } from './choice-run.js';
import { numericSettings, type Setting, wordSettings } from './recipe-settings.js';
import { concurrentTeam, tinyModel, tinyRecipe } from './tiny-run.js';

/** A team with its models, and the settings that its recipes draw from. */
export interface Way {
  readonly name: string;
  readonly assign: Readonly<Record<string, string>>;
  readonly recipe: (overrides: readonly string[]) => Recipe;
}

/** Each reason of a failure, so that a new one fails here until it is named. */
export const reasons = Object.keys({
  error: true,
  'invalid-output': true,
  overlong: true,
  timeout: true,
  'too-many-turns': true,
  reward: true,
  backend: true,
} satisfies Record<FailureReason, true>) as FailureReason[];

const failingSometimes = (chance: number) => {
  if (chance < 0.12) throw new Error('on purpose');
};
/** Each reason in a part of the episodes, half of them in all. */
const failingInAllWays = (chance: number) => {
  const reason = reasons[Math.floor(chance * 2 * reasons.length)];
  if (reason !== undefined && reason !== 'reward') throw new EpisodeFailure(reason, 'on purpose', { agent: 'first' });
};
const judgedSometimes = (rounds: readonly Round[], chance: number) => {
  if (chance > 0.85) throw new Error('the judge is down');
  return richReward(rounds);
};

const [own, one] = [
  { first: 'first', second: 'second' },
  { first: 'shared', second: 'shared' },
];
const brief = {
  training: { steps: 4, tasksPerStep: 2, groupSize: 4, checkpointEvery: 2 },
  evaluation: { every: 2, tasks: 2 },
};
const played = (name: string, team: Team, assign: Way['assign'] = own, changes: object = {}): Way => ({
  name,
  assign,
  recipe: (overrides) => choiceRecipe({ team, ...brief, ...changes } as Partial<RecipeInput>, overrides),
});
const gameOf = (reward: (rounds: readonly Round[], chance: number) => unknown): Team =>
  game({ between: failingSometimes, reward: reward as typeof richReward });

const policy = { model: choiceTable({ choices: ['a', 'b', 'c', 'x'] }), optimizer: { type: 'sgd', learningRate: 0.5 } };
const { reward: _, ...unrewarded } = game({ between: failingSometimes });
const ranked = {
  ...unrewarded,
  rewardGroup: ({ episodes }: { episodes: readonly unknown[] }) => episodes.map((_, i) => i / 8),
} as unknown as Team;
/** Fewer tasks than most steps play, so that a step plays a task twice. */
const few = {
  name: 'few games',
  load: async () => ({
    name: 'few games',
    size: 3,
    at: (index: number): Task => ({ id: `t${index}`, data: { level: index === 0 ? 'easy' : 'hard' } }),
  }),
};
const text = frozen({
  complete: async ({ messages }) => ({ text: 'abcx'.charAt(JSON.stringify(messages).length % 4) }),
});

/** Ways whose policies are tables of choices: several steps take a fraction of a second. */
export const tables: readonly Way[] = [
  played('rich rewards', gameOf(richReward)),
  played(
    'rewards below 0',
    gameOf((rounds, chance) => -chance - rounds.length),
  ),
  played(
    'rewards of 0 and 1',
    gameOf((rounds) => rounds[0]?.first === 'a'),
  ),
  played(
    'equal rewards',
    gameOf(() => 1),
  ),
  played('failures of each kind', game({ between: failingInAllWays, reward: judgedSometimes })),
  played('one policy for both', game({ between: failingInAllWays }), one, {
    assign: 'shared',
    policies: { shared: policy },
  }),
  played(
    'a frozen text',
    game({ between: failingSometimes }),
    { first: 'first' },
    {
      assign: { first: 'first', second: text },
      policies: { first: policy },
    },
  ),
  played('rewards of groups', ranked),
  played('tasks that a step plays twice', game({ between: failingSometimes }), own, { tasks: few }),
];

const written = (name: string, assign: Way['assign'], changes: object): Way => ({
  name,
  assign,
  recipe: (overrides) => tinyRecipe(changes as Partial<RecipeInput>, overrides),
});
const [each, shared] = [
  { solver: 'solver', verifier: 'verifier' },
  { solver: 'shared', verifier: 'shared' },
];
const adapters = lora(tinyModel, { rank: 2 });

/** Ways whose policies are small decoders. */
export const decoders: readonly Way[] = [
  written('a policy each', each, { assign: 'separate' }),
  written('an adapter each', each, { model: adapters }),
  written('one policy', shared, { assign: 'shared' }),
  written('one adapter', shared, { assign: 'shared', model: adapters }),
  written('adapters of agents', shared, { assign: 'shared', policies: { shared: { agentAdapters: { rank: 2 } } } }),
  written(
    'a frozen model',
    { solver: 'one', verifier: 'one' },
    { assign: { solver: 'one', verifier: frozen(tinyModel) } },
  ),
  written('two calls at once', each, { assign: 'separate', team: concurrentTeam }),
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
export function drawnSettings(random: RandomStream, { assign }: Way): string[] {
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

/**
 * Errors that only the turns of a run can cause: calls without a round under `advantage-alignment`, and many failures
 * of one kind in a few episodes.
 */
export const foundLater = /give each call of an agent its round|of the episodes failed for one reason|failed alike/;
