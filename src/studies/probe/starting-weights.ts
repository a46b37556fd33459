/** The weights with which a study plays: those that reinforcement would begin with, or those of a checkpoint. */
import { EVENT_VERSION, type Warmup } from '../../core/events.js';
import type { Checkpoint } from '../../store/checkpoint-files.js';
import { firstProgress, loadCheckpoint } from '../../training/checkpoint.js';
import type { OpenRun, Progress } from '../../training/run-state.js';
import { type WarmStartLog, warmStart } from '../../training/warm-start/warm-start.js';

/** The weights with which a study plays. */
export interface Start {
  readonly start: 'checkpoint' | 'warm start' | 'first weights';
  readonly progress: Progress;
  /** What the warm start took; 0 where it is in the cache already. */
  readonly seconds: number;
}

export interface StartOptions {
  /** Where the policies come from; otherwise the recipe's warm start, or their first weights. */
  readonly checkpoint?: Checkpoint | undefined;
  /** Receives the warm start's events. */
  readonly onWarmup?: ((event: Warmup) => void) | undefined;
}

/** Gives the policies the weights that reinforcement would begin with; says what that took. */
export async function startingWeights(run: OpenRun, { checkpoint, onWarmup }: StartOptions): Promise<Start> {
  const { recipe, host } = run;
  if (checkpoint !== undefined)
    return { start: 'checkpoint', progress: await loadCheckpoint(run, checkpoint, { optimizer: false }), seconds: 0 };
  const progress = firstProgress(recipe);
  if (recipe.warmStart === undefined) return { start: 'first weights', progress, seconds: 0 };
  let seconds = 0;
  const log: WarmStartLog = {
    emit(body) {
      seconds += body.seconds;
      onWarmup?.(body);
      return { ...body, time: host.clock.now().toISOString(), version: EVENT_VERSION };
    },
    write() {}, // a cached warm start's events: the run would not train it again either
  };
  await warmStart(run, log, recipe.warmStart);
  return { start: 'warm start', progress, seconds };
}
