import { permutation } from '../../core/random.js';
import { decayAfterRise, type LearningRateSettings, learningRateAt } from './learning-rate.js';

/** The settings of a policy or of a critic that say how often it is updated in a step, and at which learning rate. */
interface UpdateSettings extends Omit<LearningRateSettings, 'learningRate'> {
  readonly optimizer: { readonly learningRate: number };
  readonly epochs: number;
  readonly miniBatches: number;
}

/**
 * The mini-batches of a step's updates in order, each with its learning rate.
 * @param position The step (1, 2, ...) and how many there are, counted from the first in which the model is updated
 * @param keyOf The key that decides how an epoch divides the samples
 */
export function* updatesOf<Sample>(
  samples: readonly Sample[],
  { optimizer: { learningRate }, warmupSteps, schedule, epochs, miniBatches }: UpdateSettings,
  position: { readonly step: number; readonly steps: number },
  keyOf: (epoch: number) => readonly (string | number)[],
): Generator<{ readonly batch: readonly Sample[]; readonly learningRate: number }> {
  const rates = { learningRate, warmupSteps, schedule };
  const decay = decayAfterRise(rates, position.steps * epochs * miniBatches);
  for (let epoch = 0; epoch < epochs; epoch++)
    for (const [i, batch] of miniBatchesOf(samples, miniBatches, keyOf(epoch)).entries()) {
      const update = ((position.step - 1) * epochs + epoch) * miniBatches + i + 1;
      yield { batch, learningRate: learningRateAt(rates, update, decay) };
    }
}

/** Nearly equal parts in an order that the key decides; the whole in its own order where there is only one. */
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
