/** The work that needs tasks and models, in one table, so that the commands can be tested without a model. */
import { runWork } from '../run/api.js';
import { improvePrompts } from '../studies/improve/improve-prompts.js';
import { planRun } from '../studies/plan/dry-run.js';
import { forecastRun } from '../studies/plan/run-forecast.js';
import { probeRecipe } from '../studies/probe/probe-recipe.js';
import { openDashboard } from './open-dashboard.js';

export const work = { ...runWork, planRun, forecastRun, probeRecipe, improvePrompts, openDashboard };

export type Work = typeof work;
