import type { Host } from '../../../base/host.js';
import type { TaskSet } from '../../../base/nouns.js';
import type { RolloutExecutor } from '../../../teams/rollout.js';
import type { RunSettings } from './run-settings.js';

export interface Tasks {
  readonly train: TaskSet;
  readonly test: TaskSet;
}

/** The part of a run that plays episodes. */
export interface Playing extends Pick<RunSettings, 'team' | 'seed' | 'training'> {
  readonly tasks: Tasks;
  readonly executor: RolloutExecutor;
  readonly host: Host;
}
