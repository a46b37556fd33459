/** The checks of a recipe's rollout settings. */

import { stalenessOf } from '../../../method/index.js';
import type { Recipe } from '../../../method/recipe.js';
import { lossPath, lossSettings } from '../../../method/recipe.js';
import type { Checks } from './check.js';

/** For more updates a loss must correct for the weights that played. */
const MOST_UNCORRECTED = 4;

export function* rolloutChecks(recipe: Recipe): Checks {
  yield* isolationChecks(recipe);
  yield* queueChecks(recipe);
  const staleness = stalenessOf(recipe);
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

function* queueChecks({ rollout, code }: Recipe): Checks {
  if (rollout?.type !== 'queue') return;
  const url = rollout.url !== undefined;
  yield {
    path: 'rollout.url',
    test: url,
    message: 'is missing; expected the address of Redis, such as redis://127.0.0.1:6379',
  };
  const message = 'workers load the recipe from its file, but this recipe was defined by a program';
  yield { path: 'rollout.type', test: code !== undefined, message };
  const path = 'rollout.isolate';
  yield {
    path,
    test: rollout.isolate === false,
    message: 'workers are already separate processes: choose one of the two',
  };
}

function* isolationChecks({ rollout, gateway, code }: Recipe): Checks {
  const path = 'rollout.isolate';
  const inProgram = (rollout?.isolate ?? false) === false;
  const message = 'threads load the recipe from its file, but this recipe was defined by a program';
  yield { path, test: inProgram || code !== undefined, message };
  yield {
    path,
    test: inProgram || gateway === undefined,
    message: 'a gateway needs episodes that play in the same thread: choose one of the two',
  };
}
