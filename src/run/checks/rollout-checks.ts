/** The checks of how a recipe plays its episodes. */
import { lossOf, lossPath } from '../../recipe/policy-losses.js';
import type { Recipe } from '../../recipe/recipe.js';
import { stalenessOf } from '../../training/step/rollouts-ahead.js';
import type { Checks } from './check.js';

/** Beyond so many updates a loss has to correct for the weights that played. */
const MOST_UNCORRECTED = 4;

export function* rolloutChecks(recipe: Recipe): Checks {
  yield* isolationChecks(recipe);
  yield* queueChecks(recipe);
  const staleness = stalenessOf(recipe);
  const path = 'rollout.staleness';
  for (const policy of Object.keys(recipe.policies)) {
    const loss = lossOf(recipe, policy);
    yield {
      path,
      test:
        staleness <= MOST_UNCORRECTED || ('importanceCorrection' in loss && loss.importanceCorrection !== undefined),
      message: `above ${MOST_UNCORRECTED} the weights that played differ too much: expected ${lossPath(recipe, policy)}.importanceCorrection`,
    };
  }
}

function* queueChecks({ rollout, code }: Recipe): Checks {
  if (rollout?.type !== 'queue') return;
  const url = rollout.url !== undefined;
  yield { path: 'rollout.url', test: url, message: 'is missing: the address of Redis, redis://127.0.0.1:6379' };
  const message = 'workers load the code of the recipe from its file, and this one comes from a program';
  yield { path: 'rollout.type', test: code !== undefined, message };
  const path = 'rollout.isolate';
  yield { path, test: rollout.isolate === false, message: 'workers are processes of their own: take one' };
}

function* isolationChecks({ rollout, gateway, code }: Recipe): Checks {
  const path = 'rollout.isolate';
  const inProgram = (rollout?.isolate ?? false) === false;
  const message = 'threads load the code of the recipe from its file, and this one comes from a program';
  yield { path, test: inProgram || code !== undefined, message };
  yield { path, test: inProgram || gateway === undefined, message: 'a gateway answers in the program: take one' };
}
