/** The work that needs tasks and models, in one table, so that the commands can be tested without a model. */
import { runWork } from '../run/api.js';
import { planRun } from '../studies/plan/dry-run.js';
import { probeRecipe } from '../studies/probe/probe-recipe.js';

export const work = { ...runWork, planRun, probeRecipe };

export type Work = typeof work;
