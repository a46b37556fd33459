/** The weights for a study: the weights before reinforcement, or a checkpoint's. */
import { EVENT_VERSION, type Warmup } from '@drmas/engine/events';
import { loadCheckpoint, type WarmStartLog, warmStart } from '../../../method/checkpoints.js';
import { firstProgress, type OpenRun, type Progress } from '../../../method/index.js';
import type { Recipe } from '../../../method/recipe.js';
import type { Checkpoint } from '../../../method/store.js';

export interface Start {
  readonly start: 'checkpoint' | 'warm start' | 'first weights';
  readonly progress: Progress;
  /** The seconds of the warm start; 0 if it is already in the cache. */
  readonly seconds: number;
}

export interface StartOptions {
  /** The checkpoint of the policies. Default: the recipe's warm start, or their first weights. */
  readonly checkpoint?: Checkpoint | undefined;
  readonly onWarmup?: ((event: Warmup) => void) | undefined;
}

/** Gives the policies their weights from before reinforcement, and returns the cost. */
export async function startingWeights(
  run: OpenRun,
  settings: Recipe['warmStart'],
  { checkpoint, onWarmup }: StartOptions,
): Promise<Start> {
  const { host } = run;
  if (checkpoint !== undefined)
    return { start: 'checkpoint', progress: await loadCheckpoint(run, checkpoint, { optimizer: false }), seconds: 0 };
  const progress = firstProgress(run);
  if (settings === undefined) return { start: 'first weights', progress, seconds: 0 };
  let seconds = 0;
  const log: WarmStartLog = {
    emit(body) {
      if (body.type === 'warmup') {
        seconds += body.seconds;
        onWarmup?.(body);
      } else host.warn(body.code, body.message);
      return { ...body, time: host.clock.now().toISOString(), version: EVENT_VERSION };
    },
    write() {}, // the events of a cached warm start: a run would not train it again either
  };
  await warmStart(run, log, settings);
  return { start: 'warm start', progress, seconds };
}
