/** A run while it works: the open run, which stays the same, and its progress, which a checkpoint holds. */
import type { EstimatorState } from '../advantage/define-estimator.js';
import type { Commits } from '../backends/hub/local-models.js';
import type { TrainBackend } from '../contract/backend.js';
import type { Hardware } from '../contract/capabilities.js';
import type { SampleBackend } from '../contract/sampling.js';
import type { PolicyInfo, PolicySpec } from '../contract/weights.js';
import type { Host } from '../core/host.js';
import type { TaskSet } from '../core/task.js';
import type { Assignment } from '../recipe/assignment.js';
import type { Recipe } from '../recipe/recipe.js';
import type { RolloutExecutor } from '../rollout/executor.js';
import type { StabilityWatch } from './stability/stability-watch.js';
import type { KlCoefficients } from './update/kl-penalty.js';

export type Backend = TrainBackend & SampleBackend;

export interface Tasks {
  readonly train: TaskSet;
  readonly test: TaskSet;
}

/** A model of the recipe that the backend holds. */
export interface OpenModel {
  /** Where its first weights come from. */
  readonly spec: PolicySpec;
  readonly info: PolicyInfo;
}

export interface RunWarning {
  readonly code: string;
  readonly message: string;
}

/** A recipe with everything that plays and trains it. Whoever opened it disposes of the backend. */
export interface OpenRun {
  /** Directories stand in place of models' names on hubs. */
  readonly recipe: Recipe;
  readonly assignment: Assignment;
  readonly tasks: Tasks;
  readonly backend: Backend;
  readonly hardware: Hardware;
  /** By their names in the backend: policies and frozen models. */
  readonly models: Readonly<Record<string, OpenModel>>;
  readonly executor: RolloutExecutor;
  /** Commits of the recipe's models on hubs. */
  readonly commits: Commits;
  /** What is not as the recipe asks. */
  readonly warnings: readonly RunWarning[];
  readonly host: Host;
}

/** How far a run has come. Random numbers are functions of the step, so there is no generator among it. */
export interface Progress {
  /** The last complete step. */
  step: number;
  /** The last step that was evaluated, -1 for none. */
  evaluated: number;
  /** What the estimator keeps from the last complete step for the next. */
  estimator: EstimatorState;
  readonly watch: StabilityWatch;
  readonly kl: KlCoefficients;
}
