/** The one place where the command line meets training, so that its commands can be tested without a model. */

import { evaluateCheckpoint, executeRun } from '../run/execute-run.js';
import { prepareTasks } from '../run/open-run.js';
import { planRun } from '../studies/plan/dry-run.js';
import { probeRecipe } from '../studies/probe/probe-recipe.js';

export const work = { prepareTasks, executeRun, evaluateCheckpoint, planRun, probeRecipe };

/** What the commands ask of the rest. */
export type Work = typeof work;
