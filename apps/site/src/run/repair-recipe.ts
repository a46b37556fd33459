import { defineBackend } from '@drmas/engine/backends';
import { EMBEDDED_CAPABILITIES, embeddedSchema } from '@drmas/engine/embedded';
import { SAMPLER_KEY, samplerSchema } from '@drmas/engine/endpoints';
import { losses } from '@drmas/engine/loss';
import { operations, toolboxSymbols } from '../../../../recipes/repair/commands.js';
import repair from '../../../../recipes/repair/recipe.js';
import { estimators } from '../../../../src/method/advantage.js';
import { type Lists, type Recipe, resolveWith } from '../../../../src/method/recipe.js';

const { type: _, ...settings } = embeddedSchema.shape;

/** The composition root of the page: everything that a recipe can name in a browser tab. */
const tabLists: Lists = {
  estimators,
  losses,
  backends: [
    defineBackend({
      type: 'embedded',
      schema: settings,
      capabilities: EMBEDDED_CAPABILITIES,
      open: () => Promise.reject(new Error('the page opens its engine itself')),
    }),
  ],
  sampler: { schema: samplerSchema, keyVariable: SAMPLER_KEY },
  trackers: [],
  ownLosses: [],
  ownTrackers: [],
};

/** The parts of a run of the page. */
export interface RunSettings {
  readonly estimator: string;
  /** The seed of the warm start, of sampling and of reinforcement. */
  readonly seed: number;
  /** Overrides as on the command line: `training.steps=20`. */
  readonly set: readonly string[];
  /** The commands' new names, in the order of `operations`; absent for the recipe's own. */
  readonly names?: readonly string[] | undefined;
}

/** The curves are of the episodes that train, so that evaluations, which no step learns from, are one episode long. */
const WITHOUT_EVALUATIONS = ['evaluation.tasks=1', 'evaluation.samples=1', 'evaluation.every=1000000'];

/** The overrides with which the command line trains the same run. */
export const repairOverrides = ({ estimator, seed, set }: RunSettings): string[] => [
  `advantage.type=${estimator}`,
  `seed=${seed}`,
  `warmStart.seed=${seed}`,
  ...WITHOUT_EVALUATIONS,
  ...set,
];

/** The recipe `repair` as the page trains it. @throws RecipeError naming the override that is wrong */
export function repairRecipe(settings: RunSettings): Recipe {
  const definition = settings.names === undefined ? repair : renamed(settings.names);
  return resolveWith(tabLists, definition, { name: 'repair', overrides: repairOverrides(settings) });
}

/**
 * The recipe with other new names. It changes the toolbox of this worker, which trains one run. A name is one symbol,
 * so the models and their warm start stay as they are.
 */
function renamed(names: readonly string[]): typeof repair {
  const before = operations.map((operation) => operation.names[2] as string);
  const symbols = toolboxSymbols.map((symbol) => names[before.indexOf(symbol)] ?? symbol);
  for (const [i, { names: ofBoth }] of operations.entries()) (ofBoth as { 2: string })[2] = names[i] ?? before[i] ?? '';
  const { model } = repair.input;
  if (model === undefined || !('tokenizer' in model)) throw new Error('the model of the recipe repair has no symbols');
  const tokenizer = { ...model.tokenizer, symbols } as typeof model.tokenizer;
  return { ...repair, input: { ...repair.input, model: { ...model, tokenizer } as typeof model } };
}

/** Whether a run begins with the warm start of the recipe and seed 1, which the page may have as a file. */
export const isUsualWarmStart = ({ seed, set }: RunSettings): boolean =>
  seed === 1 && set.every((each) => /^(?:training|advantage|loss|tasks\.(?:train|test)\.drift)\b/.test(each));
