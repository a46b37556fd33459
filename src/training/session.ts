import type { Commits } from '../backends/hub/local-models.js';
import type { TrainBackend } from '../contract/backend.js';
import type { Hardware } from '../contract/capabilities.js';
import type { SampleBackend } from '../contract/sampling.js';
import type { PolicyInfo, PolicySpec } from '../contract/weights.js';
import type { Clock } from '../core/clock.js';
import type { Files } from '../core/files.js';
import type { TaskSet } from '../core/task.js';
import type { Recipe } from '../recipe/recipe.js';
import type { RolloutExecutor } from '../rollout/executor.js';
import type { RunDirectory } from '../store/run-directory.js';
import type { StabilityWatch } from './stability/stability-watch.js';
import type { KlCoefficients } from './update/kl-penalty.js';

export type Backend = TrainBackend & SampleBackend;

/** A training run in progress: what the loop works with. `step` is the last complete one. */
export interface Session extends Stage {
  readonly run: RunDirectory;
  readonly watch: StabilityWatch;
  readonly kl: KlCoefficients;
  step: number;
  /** The last step that was evaluated, -1 for none. */
  evaluated: number;
}

/** What playing, and so evaluating, needs. */
export interface Stage {
  readonly recipe: Recipe;
  readonly tasks: Tasks;
  readonly backend: Backend;
  readonly executor: RolloutExecutor;
  readonly files: Files;
  readonly clock: Clock;
  readonly signal: AbortSignal;
  /** Of the recipe's models on hubs. */
  readonly commits: Commits;
}

export interface Tasks {
  readonly train: TaskSet;
  readonly test: TaskSet;
}

export interface OpenedPolicies {
  /** What they began as. */
  readonly specs: Readonly<Record<string, PolicySpec>>;
  readonly policies: Readonly<Record<string, PolicyInfo>>;
  readonly hardware: Hardware;
  /** What is not as the recipe asks. */
  readonly warnings: readonly { readonly code: string; readonly message: string }[];
}
