import repair from '../../../recipes/repair/recipe.js';
import type { Recipe } from '../../../src/method/recipe.js';
import { resolveRecipe } from '../../../src/runs/composition.js';

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
  return resolveRecipe(repair, { name: 'repair', overrides: repairOverrides(settings) });
}
