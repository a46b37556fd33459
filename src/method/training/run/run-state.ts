/** An open run: everything that stays the same until the run ends. */

import type { Backend, ModelHandle, WeightsSpec } from '@drmas/engine/contract';
import { BackendError } from '@drmas/engine/errors';
import type { Commits } from '@drmas/engine/formats';
import type { Assignment } from '../../recipe/assignment.js';
import type { RunDirectory } from '../../store/run-directory.js';
import type { Learner, TrainedModel } from './learner.js';
import type { Playing } from './playing.js';
import type { RunSettings } from './run-settings.js';
import type { Signal } from './signal.js';

export type { Playing, Tasks } from './playing.js';
export type { RunSettings } from './run-settings.js';

export interface RunWarning {
  readonly code: string;
  readonly message: string;
}

/** Everything that plays and trains a recipe. The code that opened it must dispose of it. */
export interface OpenRun extends Playing, RunSettings {
  readonly assignment: Assignment;
  /** The backend of each model, by the model's name in the assignment; models on equal backends have the same one. */
  readonly backends: Readonly<Record<string, Backend>>;
  readonly weights: Readonly<Record<string, WeightsSpec>>;
  readonly models: Readonly<Record<string, ModelHandle>>;
  /** The models that reinforcement or the warm start trains, in the order of the assignment. */
  readonly trained: readonly TrainedModel[];
  readonly commits: Commits;
  readonly warnings: readonly RunWarning[];
  readonly dispose: () => Promise<void>;
}

export interface TrainingRun extends OpenRun {
  readonly signals: readonly Signal[];
  readonly learners: readonly Learner[];
}

/** The receiver of events, episodes and checkpoints: a run's directory, or a page that shows a run. */
export type RunLog = Pick<RunDirectory, 'emit' | 'writeStepEpisodes' | 'writeEvaluationEpisodes' | 'writeCheckpoint'>;

/** The backend of a model, to open models. @throws BackendError if the run has no model of this name */
export function backendNamed({ backends }: Pick<OpenRun, 'backends'>, model: string): Backend {
  const backend = backends[model];
  if (backend === undefined) throw new BackendError(`the run has no model '${model}'`);
  return backend;
}

/** The backends of a run, each once, in the order of the models. */
export function backendsOf({ backends }: Pick<OpenRun, 'backends'>): Backend[] {
  return [...new Set(Object.values(backends))];
}
