import type { CriticHandle, ValueLossResult, ValueLossSettings } from '../contract/handles.js';
import type { OptimStepResult, OptimStepSettings } from '../contract/optimizer-settings.js';
import type { TrainingSample, ValueSample } from '../nouns.js';
import { type EmbeddedModel, type EngineServices, fillState, openState, writeState } from './embedded-model.js';
import { readValueHead, writeValueHead } from './state-files.js';
import { packSamples, transferables } from './thread/sample-batch.js';

/** A critic of the embedded engine. Its trunk has the shape of a policy, and is written and read like one. */
export class EmbeddedCritic implements CriticHandle {
  readonly #services: EngineServices;
  readonly #id: number;
  readonly #policy: EmbeddedModel;

  private constructor(services: EngineServices, id: number, policy: EmbeddedModel) {
    this.#services = services;
    this.#id = id;
    this.#policy = policy;
  }

  /** A critic with the policy's present weights, or with the saved weights of a critic. @throws CheckpointError */
  static async open(
    services: EngineServices,
    id: number,
    policy: EmbeddedModel,
    directory: string | undefined,
  ): Promise<EmbeddedCritic> {
    await services.thread.call('createCritic', id, policy.id);
    const critic = new EmbeddedCritic(services, id, policy);
    if (directory !== undefined) await critic.#load(directory);
    return critic;
  }

  values(samples: readonly TrainingSample[]): Promise<Float32Array[]> {
    const batch = packSamples(samples);
    return this.#services.thread.callWith(transferables(batch), 'criticValues', this.#id, batch);
  }

  forwardBackward(samples: readonly ValueSample[], settings: ValueLossSettings): Promise<ValueLossResult> {
    return this.#services.thread.call('criticForwardBackward', this.#id, samples, settings);
  }

  optimStep(settings: OptimStepSettings): Promise<OptimStepResult> {
    return this.#services.thread.call('criticOptimStep', this.#id, settings);
  }

  async save(directory: string): Promise<void> {
    const { trunk, head } = await this.#services.thread.call('exportCritic', this.#id);
    await writeState(this.#services, this.#policy, directory, trunk);
    await writeValueHead(this.#services.files, directory, head);
  }

  async #load(directory: string): Promise<void> {
    const { files, thread } = this.#services;
    const head = await readValueHead(files, directory, this.#policy.config.width);
    const trunk = await openState(this.#services, this.#policy, directory, { optimizer: true });
    await fillState(this.#services, { kind: 'critic', id: this.#id }, trunk);
    await thread.call('importHead', this.#id, head);
  }
}
