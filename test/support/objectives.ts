/** Objectives with every term, and their results for a made-up policy. */

import { type ForwardBackwardOptions, type KlKind, type LossSpec, normalizerOf, objectiveOf } from '@drmas/engine/loss';
import type { TrainingSample } from '@drmas/engine/nouns';
import { someSpecs, typeOfLoss } from './loss-specs.js';

const kinds: KlKind[] = ['k1', 'k2', 'k3', 'abs'];
/** Losses alone, with a KL penalty, with an entropy bonus and with both. */
export const terms = someSpecs.flatMap((loss, i): Omit<ForwardBackwardOptions, 'normalizer'>[] => {
  const kl = { kind: kinds[i % kinds.length] as KlKind, coefficient: 0.3 };
  return [
    { loss },
    { loss, kl },
    i % 2 === 0 ? { loss, entropyCoefficient: 0.2 } : { loss, kl, entropyCoefficient: 0.2 },
  ];
}) as (Omit<ForwardBackwardOptions, 'normalizer'> & { readonly loss: LossSpec })[];

export const typeOfTerm = ({ loss }: (typeof terms)[number]): string => typeOfLoss(loss);

/** A policy that has moved: a function of the row alone, as a forward pass is. */
export const forward = ({ tokens, mask }: TrainingSample) =>
  Float32Array.from(tokens, (token, t) => (mask[t] === 0 ? 0 : -0.4 * token - 0.1 * t + Math.sin(3 * token + t) / 2));

export const entropyOf = ({ tokens }: TrainingSample) =>
  Float32Array.from(tokens, (token, t) => 1 + Math.cos(token + 2 * t));

export function complete(options: Omit<ForwardBackwardOptions, 'normalizer'>, batch: readonly TrainingSample[]) {
  const normalizer = options.loss.type === 'demonstrations' ? 1 : normalizerOf(batch, options.loss, 4);
  return { ...options, normalizer };
}

export function evaluate(
  batch: readonly TrainingSample[],
  options: ForwardBackwardOptions,
  logprobsOf: (sample: TrainingSample, index: number) => Float32Array = forward,
  entropiesOf: (sample: TrainingSample, index: number) => Float32Array = entropyOf,
) {
  const objective = objectiveOf(batch, options);
  const sent = objective.samples;
  const sums = objective.begin(() => sent.map(logprobsOf));
  const gradients = sent.map((each, i) => sums.gradient(i, logprobsOf(each, i)));
  const spreads = sent.map((each, i) => sums.entropyGradient?.(i, entropiesOf(each, i)));
  return { sent, gradients, spreads, ...sums.result(sent.map(entropiesOf)) };
}
