/** The one place where the command line meets training, so that its commands can be tested without a model. */
import { availableParallelism } from 'node:os';
import type { Episode } from '../core/episode.js';
import type { EvaluationEvent } from '../core/events.js';
import type { Recipe } from '../recipe/recipe.js';
import type { Checkpoint } from '../runs/checkpoints.js';
import type { RunDirectory } from '../runs/run-directory.js';
import { evaluateCheckpoint, executeRun } from '../training/run.js';
import { prepareTasks } from '../training/session.js';

export interface WorkOptions {
  readonly run: RunDirectory;
  /** Threads of the kernels; all cores when not given. */
  readonly threads?: number | undefined;
  /** Ends the work early: training then writes a checkpoint and returns. */
  readonly signal: AbortSignal;
  /** Says to a person what is no event, such as that the warm start comes from the cache. */
  readonly notify: (message: string) => void;
}

/** What the commands ask of the rest. */
export interface Work {
  /**
   * Reads the tasks and checks whatever can be checked before anything is created.
   * @throws DrmasError with exit code 2 when the recipe cannot be run
   */
  check(recipe: Recipe): Promise<void>;
  /** Starts a run, or goes on from a checkpoint to which the run directory was rewound. Resolves also when interrupted. */
  train(recipe: Recipe, options: WorkOptions & { readonly checkpoint?: Checkpoint | undefined }): Promise<void>;
  /** Plays the recipe's evaluation with the weights of a checkpoint; writes nothing. */
  evaluate(
    recipe: Recipe,
    options: WorkOptions & { readonly checkpoint: Checkpoint },
  ): Promise<{ readonly evaluation: EvaluationEvent; readonly episodes: readonly Episode[] }>;
}

const executionOptions = ({ threads, signal, notify }: WorkOptions) => ({
  threads: threads ?? availableParallelism(),
  signal,
  onNotice: notify,
});

export const work: Work = {
  async check(recipe) {
    await prepareTasks(recipe);
  },
  train: (recipe, { run, checkpoint, ...options }) =>
    executeRun(recipe, run, { ...executionOptions({ run, ...options }), checkpoint }),
  async evaluate(recipe, options) {
    const { event, episodes } = await evaluateCheckpoint(recipe, options.checkpoint, executionOptions(options));
    return { evaluation: event, episodes };
  },
};
