import { permutation } from '../../../base/math.js';
import { decayAfterRise, type LearningRateSettings, learningRateAt } from './learning-rate.js';

/** The settings of a policy or a critic for the number of updates in a step and their learning rates. */
interface UpdateSettings extends Omit<LearningRateSettings, 'learningRate'> {
  readonly optimizer: { readonly learningRate: number };
  readonly epochs: number;
  readonly miniBatches: number;
}

/**
 * The mini-batches of a step's updates in order, each with its learning rate.
 * @param position The step (1, 2, ...) and the number of steps, counted from the first step that updates the model
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
