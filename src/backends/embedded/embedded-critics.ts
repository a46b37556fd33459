import type { CriticBackend, ValueLossSettings } from '../../contract/backend.js';
import type { OptimStepResult, OptimStepSettings } from '../../contract/optimizer.js';
import { BackendError } from '../../core/errors.js';
import type { Files } from '../../core/files.js';
import type { TrainingSample, ValueSample } from '../../core/sample.js';
import type { PolicyState } from './policy-state.js';
import { readValueHead, writeValueHead } from './state-files.js';
import type { EngineThread } from './thread/engine-thread.js';
import { packSamples, transferables } from './thread/sample-batch.js';

/** How a policy's state is written and read, which a critic's trunk shares. */
export interface TrunkFiles {
  /** Of the stream that a head reads. */
  width(policy: string): number;
  write(policy: string, directory: string, state: PolicyState): Promise<void>;
  /** Reads a state of this policy's shape into a critic. */
  read(policy: string, directory: string, critic: string): Promise<void>;
}

/** The critics of the embedded engine, seen from the main thread. */
export class EmbeddedCritics implements CriticBackend {
  readonly #thread: EngineThread;
  readonly #files: Files;
  readonly #trunks: TrunkFiles;
  /** The policy that each was made from. */
  readonly #policies = new Map<string, string>();

  constructor(thread: EngineThread, files: Files, trunks: TrunkFiles) {
    this.#thread = thread;
    this.#files = files;
    this.#trunks = trunks;
  }

  async create(critic: string, policy: string): Promise<void> {
    await this.#thread.call('createCritic', critic, policy);
    this.#policies.set(critic, policy);
  }

  values(critic: string, samples: readonly TrainingSample[]): Promise<Float32Array[]> {
    const batch = packSamples(samples);
    return this.#thread.callWith(transferables(batch), 'criticValues', critic, batch);
  }

  forwardBackward(critic: string, samples: readonly ValueSample[], settings: ValueLossSettings) {
    return this.#thread.call('criticForwardBackward', critic, samples, settings);
  }

  optimStep(critic: string, settings: OptimStepSettings): Promise<OptimStepResult> {
    return this.#thread.call('criticOptimStep', critic, settings);
  }

  async save(critic: string, directory: string): Promise<void> {
    const { trunk, head } = await this.#thread.call('exportCritic', critic);
    await this.#trunks.write(this.#policyOf(critic), directory, trunk);
    await writeValueHead(this.#files, directory, head);
  }

  async load(critic: string, directory: string): Promise<void> {
    const head = await readValueHead(this.#files, directory, this.#trunks.width(this.#policyOf(critic)));
    await this.#trunks.read(this.#policyOf(critic), directory, critic);
    await this.#thread.call('importHead', critic, head);
  }

  #policyOf(critic: string): string {
    const policy = this.#policies.get(critic);
    if (policy === undefined) throw new BackendError(`there is no critic '${critic}'`);
    return policy;
  }
}
