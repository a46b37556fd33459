/** A run while it works: the open run, which stays the same, and its progress, which a checkpoint holds. */
import type { EstimatorState } from '../advantage/define-estimator.js';
import type { Commits } from '../backends/hub/local-models.js';
import type { Backend } from '../contract/backend.js';
import type { CriticHandle, ModelHandle, PolicyHandle } from '../contract/handles.js';
import type { WeightsSpec } from '../contract/weights-spec.js';
import { BackendError } from '../core/errors.js';
import type { Host } from '../core/host.js';
import type { TaskSet } from '../core/task.js';
import type { Assignment } from '../recipe/assignment.js';
import type { Recipe } from '../recipe/recipe.js';
import type { RolloutExecutor } from '../rollout/executor.js';
import type { RunDirectory } from '../store/run-directory.js';
import type { StabilityWatch } from './stability/stability-watch.js';
import type { Predictions } from './step/curriculum.js';
import type { KlCoefficients } from './update/kl-penalty.js';

export interface Tasks {
  readonly train: TaskSet;
  readonly test: TaskSet;
}

export interface RunWarning {
  readonly code: string;
  readonly message: string;
}

/** A recipe with everything that plays and trains it. Whoever opened it disposes of it. */
export interface OpenRun {
  /** Directories stand in place of models' names on hubs. */
  readonly recipe: Recipe;
  readonly assignment: Assignment;
  readonly tasks: Tasks;
  /** What holds each model, by the model's name in the assignment; models on equal backends have the same one. */
  readonly backends: Readonly<Record<string, Backend>>;
  /** Where the first weights of each model come from, by its name in the assignment. */
  readonly weights: Readonly<Record<string, WeightsSpec>>;
  /** Every model that plays, by its name in the assignment. */
  readonly models: Readonly<Record<string, ModelHandle>>;
  /** Those of them that reinforcement or the warm start trains. */
  readonly policies: Readonly<Record<string, PolicyHandle>>;
  readonly executor: RolloutExecutor;
  /** Commits of the recipe's models on hubs. */
  readonly commits: Commits;
  /** What a person should know about tasks, models and backend before the run. */
  readonly warnings: readonly RunWarning[];
  readonly host: Host;
  /** Ends everything that was opened. */
  readonly dispose: () => Promise<void>;
}

/** An open run with the models that stand beside its policies. */
export interface TrainingRun extends OpenRun {
  /** The model that a policy is held near, by policy; a policy without a KL penalty has none. */
  readonly references: ReadonlyMap<string, ModelHandle>;
  /** By policy, where the estimator uses critics. */
  readonly critics: ReadonlyMap<string, CriticHandle>;
}

/** What the loop writes while it trains: a run's directory, or what shows a run that nobody keeps. */
export type RunLog = Pick<RunDirectory, 'emit' | 'writeStepEpisodes' | 'writeEvaluationEpisodes' | 'writeCheckpoint'>;

/** @throws BackendError when the run has no policy of this name */
export function policyNamed({ policies }: Pick<OpenRun, 'policies'>, name: string): PolicyHandle {
  const policy = policies[name];
  if (policy === undefined) throw new BackendError(`the run has no policy '${name}'`);
  return policy;
}

/** @throws BackendError when the run has no model of this name */
export function backendNamed({ backends }: Pick<OpenRun, 'backends'>, model: string): Backend {
  const backend = backends[model];
  if (backend === undefined) throw new BackendError(`the run has no model '${model}'`);
  return backend;
}

/** The backends of a run, each once: that of its first policy, then those of the others. */
export function backendsOf({ backends }: Pick<OpenRun, 'backends'>): Backend[] {
  return [...new Set(Object.values(backends))];
}

/** The progress of a run. Random numbers are functions of the step, so there is no generator among it. */
export interface Progress {
  /** The last complete step. */
  step: number;
  /** The last step that was evaluated, -1 for none. */
  evaluated: number;
  /** What the estimator keeps from the last complete step for the next. */
  estimator: EstimatorState;
  /** The success that a curriculum predicts of each level. */
  predictions: Predictions;
  /** The hash of the warm start, by which its weights can be found again. */
  readonly warmStart: string | undefined;
  readonly watch: StabilityWatch;
  readonly kl: KlCoefficients;
}
