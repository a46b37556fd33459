import type { Host } from '../../../base/host.js';
import type { TaskSet } from '../../../base/nouns.js';
import type { RolloutExecutor } from '../../../teams/rollout.js';
import type { Recipe } from '../../recipe/recipe.js';

export interface Tasks {
  readonly train: TaskSet;
  readonly test: TaskSet;
}

/** The part of a run that plays episodes. */
export interface Playing {
  /** The recipe. Hub names of models are replaced by local directories. */
  readonly recipe: Recipe;
  readonly tasks: Tasks;
  readonly executor: RolloutExecutor;
  readonly host: Host;
}
