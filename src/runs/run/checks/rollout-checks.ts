/** The checks of a recipe's rollout settings. */

import { stalenessOf } from '../../../method/index.js';
import type { Recipe } from '../../../method/recipe.js';
import { lossPath, lossSettings } from '../../../method/recipe.js';
import type { Checks } from './check.js';

/** For more updates a loss must correct for the weights that played. */
const MOST_UNCORRECTED = 4;

export function* rolloutChecks(recipe: Recipe): Checks {
  const { rollout, gateway } = recipe;
  const isFile = recipe.code !== undefined;
  yield* isolationChecks(rollout, gateway, isFile);
  yield* queueChecks(rollout, isFile);
  const staleness = stalenessOf(rollout);
  const path = 'rollout.staleness';
  for (const policy of Object.keys(recipe.policies)) {
    const loss = lossSettings(recipe, policy);
    yield {
      path,
      test:
        staleness <= MOST_UNCORRECTED || ('importanceCorrection' in loss && loss.importanceCorrection !== undefined),
      message: `above ${MOST_UNCORRECTED} the weights that played differ too much: expected ${lossPath(recipe, policy)}.importanceCorrection`,
    };
  }
}

/** @param isFile Whether a file defines the recipe, and not a program */
function* queueChecks(rollout: Recipe['rollout'], isFile: boolean): Checks {
  if (rollout?.type !== 'queue') return;
  const url = rollout.url !== undefined;
  yield {
    path: 'rollout.url',
    test: url,
    message: 'is missing; expected the address of Redis, such as redis://127.0.0.1:6379',
  };
  const message = 'workers load the recipe from its file, but this recipe was defined by a program';
  yield { path: 'rollout.type', test: isFile, message };
  const path = 'rollout.isolate';
  yield {
    path,
    test: rollout.isolate === false,
    message: 'workers are already separate processes: choose one of the two',
  };
}

function* isolationChecks(rollout: Recipe['rollout'], gateway: Recipe['gateway'], isFile: boolean): Checks {
  const path = 'rollout.isolate';
  const inProgram = (rollout?.isolate ?? false) === false;
  const message = 'threads load the recipe from its file, but this recipe was defined by a program';
  yield { path, test: inProgram || isFile, message };
  yield {
    path,
    test: inProgram || gateway === undefined,
    message: 'a gateway needs episodes that play in the same thread: choose one of the two',
  };
}
