import type { Recipe } from '../../recipe/recipe.js';

/** The most updates that may be made between the weights that play a step and those that learn from it. */
export const stalenessOf = ({ rollout }: Pick<Recipe, 'rollout'>): number => rollout?.staleness ?? 0;

/**
 * Whether a run that resumes after this step equals the uninterrupted run: no rollout had begun before the step's
 * updates.
 */
export const goesOnAfter = (recipe: Pick<Recipe, 'rollout' | 'training'>, step: number): boolean =>
  stalenessOf(recipe) === 0 || step % recipe.training.checkpointEvery === 0;
