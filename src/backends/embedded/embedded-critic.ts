import type { CriticHandle, ValueLossResult, ValueLossSettings } from '../../contract/handles.js';
import type { OptimStepResult, OptimStepSettings } from '../../contract/optimizer-settings.js';
import type { TrainingSample, ValueSample } from '../../core/sample.js';
import { type EmbeddedModel, type EngineRoom, fillState, openState, writeState } from './embedded-model.js';
import { readValueHead, writeValueHead } from './state-files.js';
import { packSamples, transferables } from './thread/sample-batch.js';

/** A critic of the embedded engine: its trunk has the shape of a policy, and is written and read as one. */
export class EmbeddedCritic implements CriticHandle {
  readonly #room: EngineRoom;
  readonly #id: number;
  /** The policy that the critic is like. */
  readonly #policy: EmbeddedModel;

  private constructor(room: EngineRoom, id: number, policy: EmbeddedModel) {
    this.#room = room;
    this.#id = id;
    this.#policy = policy;
  }

  /** A critic with the policy's present weights, or with what a critic saved. @throws CheckpointError */
  static async open(
    room: EngineRoom,
    id: number,
    policy: EmbeddedModel,
    directory: string | undefined,
  ): Promise<EmbeddedCritic> {
    await room.thread.call('createCritic', id, policy.id);
    const critic = new EmbeddedCritic(room, id, policy);
    if (directory !== undefined) await critic.#load(directory);
    return critic;
  }

  values(samples: readonly TrainingSample[]): Promise<Float32Array[]> {
    const batch = packSamples(samples);
    return this.#room.thread.callWith(transferables(batch), 'criticValues', this.#id, batch);
  }

  forwardBackward(samples: readonly ValueSample[], settings: ValueLossSettings): Promise<ValueLossResult> {
    return this.#room.thread.call('criticForwardBackward', this.#id, samples, settings);
  }

  optimStep(settings: OptimStepSettings): Promise<OptimStepResult> {
    return this.#room.thread.call('criticOptimStep', this.#id, settings);
  }

  async save(directory: string): Promise<void> {
    const { trunk, head } = await this.#room.thread.call('exportCritic', this.#id);
    await writeState(this.#room, this.#policy, directory, trunk);
    await writeValueHead(this.#room.files, directory, head);
  }

  async #load(directory: string): Promise<void> {
    const { files, thread } = this.#room;
    const head = await readValueHead(files, directory, this.#policy.config.width);
    const trunk = await openState(this.#room, this.#policy, directory, { optimizer: true });
    await fillState(this.#room, { kind: 'critic', id: this.#id }, trunk);
    await thread.call('importHead', this.#id, head);
  }
}
