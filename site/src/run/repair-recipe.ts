import repair from '../../../recipes/repair/recipe.js';
import {
  defineBackend,
  EMBEDDED_CAPABILITIES,
  embeddedSchema,
  SAMPLER_KEY,
  samplerSchema,
} from '../../../src/engine/backends.js';
import { losses } from '../../../src/engine/loss.js';
import { estimators } from '../../../src/method/advantage.js';
import { type Lists, type Recipe, resolveWith } from '../../../src/method/recipe.js';

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
  return resolveWith(tabLists, repair, { name: 'repair', overrides: repairOverrides(settings) });
}
