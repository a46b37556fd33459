/** The weights of a pool: the earlier versions of a policy that it keeps, in the backend and in checkpoints. */

import type { Backend, GenerateRequest, Generation, ModelHandle, OnTokens, PolicyHandle } from '@drmas/engine/contract';
import { BackendError } from '@drmas/engine/errors';
import { type Files, joinPath } from '@drmas/engine/host';
import type { TrainingSample } from '@drmas/engine/nouns';
import type { AssignedPool } from '../../recipe/assignment.js';

/** A pool of earlier versions of a policy. */
export interface OpenPool extends AssignedPool {
  readonly handle: PastVersions;
}

/** A model that plays earlier versions of a policy. A version is named by the step after which it was taken. */
export class PastVersions implements ModelHandle {
  readonly name: string;
  readonly warnings: readonly string[] = [];
  readonly #policy: PolicyHandle;
  readonly #backend: Backend;
  /** The versions by step, the oldest first. Each has a model of its own, because the policy's own ones follow it. */
  readonly #versions = new Map<number, PolicyHandle>();

  /** @param backend The backend of the policy */
  constructor(name: string, policy: PolicyHandle, backend: Backend) {
    this.name = name;
    this.#policy = policy;
    this.#backend = backend;
  }

  get tokenizer() {
    return this.#policy.tokenizer;
  }

  get context(): number {
    return this.#policy.context;
  }

  get vocabSize(): number | undefined {
    return this.#policy.vocabSize;
  }

  get parameters(): number | undefined {
    return this.#policy.parameters;
  }

  get version(): number | undefined {
    return [...this.#versions.keys()].at(-1);
  }

  logprobs(samples: readonly TrainingSample[]): Promise<Float32Array[]> {
    return this.#at(this.version).logprobs(samples);
  }

  /** Takes the policy's present weights as version 0 if there is no version yet. */
  async publish(): Promise<number> {
    if (this.version === undefined) await this.take(0, 1);
    return this.version as number;
  }

  /** Plays a version, the newest one by default. */
  async generate(
    { version = this.version, ...request }: GenerateRequest,
    signal?: AbortSignal,
    onTokens?: OnTokens,
  ): Promise<Generation> {
    const generation = await this.#at(version).generate(request, signal, onTokens);
    return { ...generation, policyVersion: version as number };
  }

  /** Adds the policy's present weights as a version. It takes the memory of the oldest if there are `keep`. */
  async take(step: number, keep: number): Promise<void> {
    const [oldest] = this.#versions;
    if (oldest === undefined || this.#versions.size < keep) return this.#add(step, await this.#open());
    const [dropped, model] = oldest;
    this.#versions.delete(dropped);
    await model.copyFrom(this.#policy);
    await this.#add(step, model);
  }

  /** Writes the newest version. */
  save(directory: string): Promise<void> {
    return this.#at(this.version).save(directory);
  }

  /** Writes each version into a directory of a checkpoint. */
  async saveAll(files: Files, directory: string): Promise<void> {
    for (const [step, model] of this.#versions) {
      const place = joinPath(directory, `${step}`);
      await files.makeDirectory(place);
      await model.save(place, { optimizer: false });
    }
  }

  /** Reads the versions that `saveAll` wrote, in place of the present ones. @throws CheckpointError */
  async loadAll(directory: string, steps: readonly number[]): Promise<void> {
    this.#versions.clear();
    for (const step of steps) await this.#add(step, await this.#open(joinPath(directory, `${step}`)));
  }

  /** A model with the policy's present weights, or with those in a directory. */
  #open(directory?: string): Promise<PolicyHandle> {
    return this.#backend.open({ type: 'like', policy: this.#policy, directory }, 'policy', this.name);
  }

  async #add(step: number, model: PolicyHandle): Promise<void> {
    await model.publish();
    this.#versions.set(step, model);
  }

  #at(step: number | undefined): PolicyHandle {
    const model = step === undefined ? undefined : this.#versions.get(step);
    if (model === undefined) throw new BackendError(`the pool '${this.name}' does not keep version ${step ?? 0}`);
    return model;
  }
}
