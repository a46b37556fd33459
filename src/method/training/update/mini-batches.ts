import { permutation } from '@drmas/engine/math';
import type { Schedule } from '../../recipe/learning.js';

interface UpdateSettings extends Omit<LearningRateSettings, 'learningRate'> {
  readonly optimizer: { readonly learningRate: number };
  readonly epochs: number;
  readonly miniBatches: number;
  readonly entropySchedule?: Schedule | undefined;
}

interface Update<Sample> {
  readonly batch: readonly Sample[];
  readonly learningRate: number;
  /** The share of the entropy bonus that its schedule leaves. */
  readonly entropyShare: number;
}

/**
 * The mini-batches of a step's updates in order, each with its learning rate and its share of the entropy bonus. The
 * rate rises with the updates that the model has had: the agents of a policy may be called first in a late step. It
 * falls with the steps of the run, so that it has fallen when the run ends.
 * @param position The step (1, 2, ...) and the number of steps, counted from the first step that updates the model; and
 *   the number of updates that were made before. An update that was left out has not moved the model, so that the rise
 *   goes on where it was
 * @param keyOf The key that decides how an epoch divides the samples
 */
export function* updatesOf<Sample>(
  samples: readonly Sample[],
  { optimizer: { learningRate }, warmupSteps, schedule, epochs, miniBatches, entropySchedule }: UpdateSettings,
  position: {
    readonly step: number;
    readonly steps: number;
    readonly made: number;
    readonly leftOut?: () => number;
  },
  keyOf: (epoch: number) => readonly (string | number)[],
): Generator<Update<Sample>> {
  const rates = { learningRate, warmupSteps, schedule };
  const total = position.steps * epochs * miniBatches;
  const decay = decayAfterRise(rates, total);
  const bonus: LearningRateSettings = {
    learningRate: 1,
    warmupSteps: 0,
    schedule: entropySchedule ?? { type: 'constant' },
  };
  const bonusDecay = decayAfterRise(bonus, total);
  const { leftOut = () => 0 } = position;
  let { made } = position;
  for (let epoch = 0; epoch < epochs; epoch++)
    for (const [i, batch] of miniBatchesOf(samples, miniBatches, keyOf(epoch)).entries()) {
      const update = ((position.step - 1) * epochs + epoch) * miniBatches + i + 1;
      const entropyShare = learningRateAt(bonus, update, bonusDecay);
      made++;
      yield { batch, learningRate: learningRateAt(rates, update, decay, made - leftOut()), entropyShare };
    }
}

/** Nearly equal parts in an order that the key decides. A single part keeps the order of the samples. */
function miniBatchesOf<Sample>(
  samples: readonly Sample[],
  count: number,
  key: readonly (string | number)[],
): Sample[][] {
  if (count === 1) return [[...samples]];
  const order = permutation(samples.length, 'mini-batches', ...key);
  const parts = Array.from({ length: count }, (): Sample[] => []);
  for (const [i, index] of order.entries()) parts[i % count]?.push(samples[index] as Sample);
  return parts.filter((part) => part.length > 0);
}

export interface LearningRateSettings {
  readonly learningRate: number;
  /** Updates over which the rate rises from 0. */
  readonly warmupSteps: number;
  readonly schedule: Schedule;
}

/** The updates between which a schedule decays: the full rate at `from`, `finalFraction` of it from `to` on. */
interface Decay {
  readonly from: number;
  readonly to: number;
}

/**
 * The learning rate of an update (1, 2, ...), a pure function of its numbers: a linear rise to the full rate at update
 * `warmupSteps`, times the decay of the schedule.
 * @param update The number of the update in the run, if each step updates the model
 * @param made The number of the update among those that were made
 */
export function learningRateAt(
  { learningRate, warmupSteps, schedule }: LearningRateSettings,
  update: number,
  { from, to }: Decay,
  made = update,
): number {
  const risen = learningRate * Math.min(1, made / Math.max(1, warmupSteps));
  if (schedule.type === 'constant') return risen;
  const { finalFraction } = schedule;
  const progress = Math.min(1, Math.max(0, update - from) / Math.max(1, to - from));
  const left = schedule.type === 'linear' ? 1 - progress : (1 + Math.cos(Math.PI * progress)) / 2;
  return risen * (finalFraction + (1 - finalFraction) * left);
}

/**
 * The decay of policies and critics, after the rise. The last update has `finalFraction` of the rate.
 * @param total Updates of the whole run, for a schedule without a number of its own
 */
export function decayAfterRise({ warmupSteps, schedule }: LearningRateSettings, total: number): Decay {
  const { updates = total } = schedule.type === 'constant' ? {} : schedule;
  return { from: Math.max(1, warmupSteps), to: updates };
}

/**
 * The decay of the warm start, from its first update on. So it overlaps the rise, and its end does not depend on the
 * step at which a loss target stops the warm start. The recipes' learning rates were chosen for this form. The update
 * after the last would have `finalFraction`.
 */
export function decayFromStart(updates: number): Decay {
  return { from: 1, to: updates + 1 };
}
