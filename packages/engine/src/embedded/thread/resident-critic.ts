import type { ValueLossResult, ValueLossSettings } from '../../contract/handles.js';
import type { OptimStepResult, OptimStepSettings } from '../../contract/optimizer-settings.js';
import { valueLoss } from '../../loss/value-loss.js';
import { CriticModel } from '../../model/decoder/critic-model.js';
import type { DecoderOptions } from '../../model/decoder/decoder.js';
import type { ValueSample } from '../../nouns.js';
import type { Kernels } from '../../tensor/kernels.js';
import type { CriticState } from '../stored-state.js';
import { naming, type ResidentPolicy } from './resident-policy.js';

/** A critic in the worker thread. */
export class ResidentCritic {
  readonly model: CriticModel;
  readonly #name: string;
  readonly #kernels: Kernels;

  /** A critic of a policy's shape and precision, whose trunk begins with the policy's weights. */
  constructor(kernels: Kernels, { name, source, model, precision }: ResidentPolicy, options: DecoderOptions) {
    this.#kernels = kernels;
    this.#name = `the critic of policy '${name}'`;
    this.model = new CriticModel(kernels, source, { ...options, precision });
    kernels.copy({ to: this.model.trunk, from: model.trained });
    this.model.trunkChanged();
  }

  async forwardBackward(samples: readonly ValueSample[], settings: ValueLossSettings): Promise<ValueLossResult> {
    const sequences = samples.map(({ tokens, mask }) => ({ tokens, mask, temperature: 1 }));
    const { slopes, result } = criticSlopes(samples, settings);
    await this.model.accumulate(sequences, slopes);
    return result();
  }

  /** @throws NonFiniteError naming policy and tensor */
  optimStep(settings: OptimStepSettings): Promise<OptimStepResult> {
    return naming(this.#name, () => this.model.optimStep(settings));
  }

  /** Copies of weights, head and the states of both optimisers. @throws NonFiniteError naming policy and tensor */
  async state(): Promise<CriticState> {
    await naming(this.#name, () => this.model.requireFinite());
    const { trunk, head, optimizers } = this.model;
    const [ofTrunk, ofHead] = await this.#kernels.read([trunk, head]);
    return {
      trunk: { weights: ofTrunk, optimizer: { ...(await optimizers.trunk.copyState()), version: 0 } },
      head: { weights: ofHead, optimizer: await optimizers.head.copyState() },
    };
  }

  setHead({ weights, optimizer }: CriticState['head']): void {
    this.#kernels.write(this.model.head, weights);
    this.model.optimizers.head.restore(optimizer);
  }
}

/**
 * @returns `slopes`: d loss / d values ([T]) from the values of the sample at `index`; `result`: the loss of all
 *   samples that were asked for
 */
export function criticSlopes(samples: readonly ValueSample[], settings: ValueLossSettings) {
  let loss = 0;
  let clipped = 0;
  const slopes = (index: number, values: Float32Array): readonly number[] => {
    const { oldValues, returns, mask } = samples[index] as ValueSample;
    const input = { values: [values], oldValues: [oldValues], returns: [returns], mask: [mask] };
    const ofRow = valueLoss(input, { ...settings, aggregate: 'token-mean' });
    const tokens = mask.reduce((sum, written) => sum + written, 0);
    loss += ofRow.loss;
    clipped += ofRow.metrics.clipFraction * tokens;
    return ofRow.gradient[0] as number[];
  };
  const result = (): ValueLossResult => ({ loss, clipFraction: clipped / Math.max(1, settings.normalizer) });
  return { slopes, result };
}
