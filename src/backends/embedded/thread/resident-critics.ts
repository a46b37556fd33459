/** The critics as the worker thread holds them. */

import type { ValueLossSettings } from '../../../contract/backend.js';
import type { OptimStepResult, OptimStepSettings } from '../../../contract/optimizer.js';
import { BackendError } from '../../../core/errors.js';
import type { ValueSample } from '../../../core/sample.js';
import { countTokens } from '../../../loss/aggregate.js';
import { valueLoss } from '../../../loss/value-loss.js';
import { CriticModel } from '../../../model/decoder/critic-model.js';
import type { DecoderOptions } from '../../../model/decoder/decoder.js';
import type { OptimizerState } from '../../../model/decoder/flat-optimizer.js';
import type { ModelSource } from '../../../model/decoder/weights/model-weights.js';
import type { Kernels } from '../../../tensor/kernels.js';
import type { PolicyState } from '../policy-state.js';
import { type SampleBatch, unpackSamples } from './sample-batch.js';

/** A critic on its way to a checkpoint. */
export interface CriticState {
  /** Without a version: nobody plays a critic. */
  readonly trunk: PolicyState;
  readonly head: { readonly weights: Float32Array; readonly optimizer: OptimizerState };
}

export class ResidentCritics {
  readonly #kernels: Kernels;
  readonly #options: DecoderOptions;
  readonly #models = new Map<string, CriticModel>();

  constructor(kernels: Kernels, options: DecoderOptions) {
    this.#kernels = kernels;
    this.#options = options;
  }

  create(name: string, source: ModelSource, trunk: Float32Array): void {
    if (this.#models.has(name)) throw new BackendError(`critic '${name}' exists already`);
    const model = new CriticModel(this.#kernels, source, this.#options);
    model.trunk.set(trunk);
    model.trunkChanged();
    this.#models.set(name, model);
  }

  values(name: string, batch: SampleBatch): Float32Array[] {
    return this.model(name).values(unpackSamples(batch));
  }

  forwardBackward(
    name: string,
    samples: readonly ValueSample[],
    settings: ValueLossSettings,
  ): { readonly loss: number; readonly clipFraction: number } {
    const sequences = samples.map(({ tokens, mask }) => ({ tokens, mask, temperature: 1 }));
    let loss = 0;
    let clipped = 0;
    this.model(name).accumulate(sequences, (index, row) => {
      const { oldValues, returns, mask } = samples[index] as ValueSample;
      const input = { values: [row], oldValues: [oldValues], returns: [returns], mask: [mask] };
      const own = valueLoss(input, { ...settings, aggregate: 'token-mean' });
      const tokens = countTokens(mask);
      loss += own.loss;
      clipped += own.metrics.clipFraction * tokens;
      return own.gradient[0] as number[];
    });
    return { loss, clipFraction: clipped / Math.max(1, settings.normalizer) };
  }

  optimStep(name: string, settings: OptimStepSettings): OptimStepResult {
    return this.model(name).optimStep(settings);
  }

  export(name: string): CriticState {
    const { trunk, head, optimizers } = this.model(name);
    return {
      trunk: { weights: Float32Array.from(trunk), optimizer: { ...optimizers.trunk.copyState(), version: 0 } },
      head: { weights: Float32Array.from(head), optimizer: optimizers.head.copyState() },
    };
  }

  /** The trunk arrives in pieces (`Engine.beginState`). */
  importHead(name: string, head: CriticState['head']): void {
    const model = this.model(name);
    model.head.set(head.weights);
    model.optimizers.head.restore(head.optimizer);
  }

  model(name: string): CriticModel {
    const model = this.#models.get(name);
    if (model === undefined) throw new BackendError(`there is no critic '${name}'`);
    return model;
  }
}
