/** The options of an update, as a program writes them: the loss, and the optimiser's step. */
import type { z } from 'zod';
import type { OptimStepSettings } from '../contract/optimizer-settings.js';
import { ArgumentError, type OptionNames, parseSpec, requireKnown } from '../errors.js';
import { type KlTerm, klEstimator } from '../loss/kl.js';
import { correctionOf, lossSchema } from '../loss/loss-spec.js';
import { normalizerOf } from '../loss/objective/merged-samples.js';
import type { ForwardBackwardOptions } from '../loss/objective/objective-sums.js';
import { defaultOptimizer, type optimizers } from '../model/optimizers/index.js';
import { optimizerSchema } from '../model/optimizers/optimizer-schema.js';
import type { TrainingSample } from '../nouns.js';
import { checkedSamples, type Sample, type SampleNeeds } from './training-sample.js';

/** A loss by its `type`; a setting that is left out has its default. */
export type LossChoice = z.input<typeof lossSchema>;

/** The options of `TrainableModel.forwardBackward`. */
export interface UpdateOptions {
  /** The loss. `{ type: 'cross-entropy' }` is supervised learning, each token weighed by its advantage. */
  readonly loss: LossChoice;
  /**
   * The divisor of the summed loss, above 0. Default: the divisor of the loss's `aggregate` over the samples of this
   * call, which is the number of written tokens for `token-mean`. To send a batch in parts, give each part the divisor
   * of the whole batch.
   */
  readonly normalizer?: number | undefined;
  /** A KL penalty, which is added to the loss. Every sample then needs `referenceLogprobs`. */
  readonly kl?: KlTerm | undefined;
  /** This number times the entropy of each token is subtracted from the token's loss. Default 0. */
  readonly entropyCoefficient?: number | undefined;
}

/** An optimiser by its `type`, by default `adamw`; a setting that is left out has its default. */
export type OptimizerChoice = ChoiceOf<(typeof optimizers)[number]>;

type ChoiceOf<Optimizer> = Optimizer extends { schema(rate: number): infer Schema } ? z.input<Schema> : never;

/** The options of `TrainableModel.optimStep`. */
export interface StepOptions {
  /** The learning rate of this step, at least 0, in place of the optimiser's: for schedules. */
  readonly learningRate?: number | undefined;
  /** Default: AdamW with learning rate 2e-4. */
  readonly optimizer?: OptimizerChoice | undefined;
  /** A gradient with a larger norm is scaled down to this norm. Default 1; 0 and Infinity switch clipping off. */
  readonly clipNorm?: number | undefined;
  /** The step is left out if the norm of the gradient, before clipping, is above this. Default: no limit. */
  readonly skipAboveNorm?: number | undefined;
}

const UPDATE: OptionNames<UpdateOptions> = { loss: true, normalizer: true, kl: true, entropyCoefficient: true };
const STEP: OptionNames<StepOptions> = { learningRate: true, optimizer: true, clipNorm: true, skipAboveNorm: true };

/** @throws ArgumentError naming the wrong value */
export function checkedUpdate(
  samples: readonly Sample[],
  update: UpdateOptions,
  { model, config }: Pick<SampleNeeds, 'model' | 'config'>,
): { readonly samples: TrainingSample[]; readonly options: ForwardBackwardOptions } {
  requireKnown(update, UPDATE);
  const { loss, normalizer, kl, entropyCoefficient = 0 } = update;
  const spec = parseSpec(lossSchema, loss, 'loss');
  if (kl !== undefined) {
    klEstimator(kl.kind);
    requireNumber('kl.coefficient', kl.coefficient, 0);
  }
  requireNumber('entropyCoefficient', entropyCoefficient, 0);
  if (normalizer !== undefined && !(normalizer > 0 && normalizer < Infinity))
    throw new ArgumentError(`normalizer: expected a number above 0, found ${normalizer}`);
  const weighted = spec.type === 'cross-entropy';
  const checked = checkedSamples(samples, {
    model,
    config,
    weighted,
    required: [
      ...(weighted ? [] : (['behaviourLogprobs', 'advantages'] as const)),
      ...(kl === undefined ? [] : (['referenceLogprobs'] as const)),
      ...(correctionOf(spec) === undefined ? [] : (['proximalLogprobs'] as const)),
    ],
  });
  // It is 0 if no sample counts; the sum is 0 then too.
  const divisor = normalizer ?? (normalizerOf(checked, spec, config.context) || 1);
  const added = { ...(kl && { kl }), ...(entropyCoefficient === 0 ? {} : { entropyCoefficient }) };
  return { samples: checked, options: { loss: spec, normalizer: divisor, ...added } };
}

/** @throws ArgumentError naming the wrong value */
export function checkedStep(options: StepOptions): OptimStepSettings {
  requireKnown(options, STEP);
  const { learningRate, optimizer, clipNorm = 1, skipAboveNorm = Infinity } = options;
  const settings = parseSpec(optimizerSchema, { type: defaultOptimizer, ...optimizer }, 'optimizer');
  // A schedule may begin or end at 0.
  if (learningRate !== undefined) requireNumber('learningRate', learningRate, 0);
  if (clipNorm !== Infinity) requireNumber('clipNorm', clipNorm, 0);
  if (skipAboveNorm !== Infinity) requireNumber('skipAboveNorm', skipAboveNorm, 0);
  return {
    optimizer: { ...settings, ...(learningRate === undefined ? {} : { learningRate }) },
    clipNorm: clipNorm === Infinity ? 0 : clipNorm,
    ...(skipAboveNorm === Infinity ? {} : { skipAboveNorm }),
  };
}

function requireNumber(what: string, value: number, least: number): void {
  if (!(value >= least && value < Infinity))
    throw new ArgumentError(`${what}: expected a finite number of at least ${least}, found ${value}`);
}
