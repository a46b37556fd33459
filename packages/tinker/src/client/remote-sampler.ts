/** Sampling from one policy: snapshots of its weights, and requests that sample them. */

import { type GenerateRequest, type Generation, responseRoom } from '@drmas/engine/contract';
import { seedOf, temperatureOf } from '@drmas/engine/endpoints';
import { BackendError } from '@drmas/engine/errors';
import type { RemoteModel } from './remote-model.js';
import { sampleAnswer, samplingSessionAnswer, savedAnswer } from './wire/answers.js';
import { checkedSample, type Limits, requireTokens } from './wire/datum.js';
import type { TinkerClient } from './wire/tinker-client.js';
import { isKind } from './wire/tinker-failure.js';

interface Snapshot {
  readonly session: string;
  readonly version: number;
  /** The generation and the updates of the model at the time of the snapshot. */
  readonly generation: number;
  readonly updates: number;
}

export interface RemoteSamplerOptions {
  readonly client: TinkerClient;
  /** The server's address. */
  readonly url: string;
  readonly model: RemoteModel;
  readonly limits: Limits;
  /** The server keeps snapshots separate from the weights in training. */
  readonly isolation: boolean;
  /** The server accepts the whole name of a random stream. */
  readonly extended: boolean;
}

export class RemoteSampler {
  nextVersion = 0;
  readonly #options: RemoteSamplerOptions;
  /** The snapshots that can be sampled, oldest first. */
  #snapshots: readonly Snapshot[] = [];
  #again: Promise<void> | undefined;
  #requests = 0;
  #running = new Set<Promise<unknown>>();

  constructor(options: RemoteSamplerOptions) {
    this.#options = options;
  }

  /**
   * Takes a snapshot of the weights after all requested updates, and samples it from now on. Returns its version.
   * @param keep The number of snapshots that can be sampled from now on, including the new one
   */
  async publish(keep = 1): Promise<number> {
    const version = this.nextVersion++;
    this.#snapshots = [...this.#snapshots, await this.#snapshot(version)].slice(-keep);
    return version;
  }

  get version(): number | undefined {
    return this.#snapshots.at(-1)?.version;
  }

  async #snapshot(version: number): Promise<Snapshot> {
    const { model, client } = this.#options;
    let state = { generation: model.generation, updates: model.updates };
    const number = client.nextSampler();
    const { path, sampling_session_id } = await model.request(
      () => {
        state = { generation: model.generation, updates: model.updates };
        return model.submit('save_weights_for_sampler', { sampling_session_seq_id: number });
      },
      (submitted) => submitted.result(savedAnswer),
    );
    return { session: sampling_session_id ?? (await this.#open(path)), version, ...state };
  }

  /** For servers that name a snapshot instead of opening a session on it. */
  async #open(path: string | null | undefined): Promise<string> {
    const { client, model } = this.#options;
    if (path === null || path === undefined)
      throw new BackendError(`the server named no snapshot of policy '${model.name}'`);
    const body = {
      session_id: await client.session(),
      sampling_session_seq_id: client.nextSampler(),
      model_path: path,
      type: 'create_sampling_session',
    };
    return (await client.ask('create_sampling_session', body, samplingSessionAnswer)).sampling_session_id;
  }

  /** Waits for running samples: an update would change their weights if the server's snapshots are not isolated. */
  async idle(): Promise<void> {
    await Promise.allSettled(this.#running);
  }

  /** @throws BackendError when the prompt does not fit, or sampling an older snapshot would undo updates */
  generate(request: GenerateRequest): Promise<Generation> {
    const { limits } = this.#options;
    requireTokens(request.prompt, limits, 1);
    responseRoom(request, limits.context);
    const generated = this.#generate(request);
    this.#running.add(generated);
    generated.catch(() => {}).finally(() => this.#running.delete(generated));
    return generated;
  }

  async #generate(request: GenerateRequest): Promise<Generation> {
    const { model } = this.#options;
    for (;;) {
      const snapshot = this.#played(request.version);
      const { generation } = snapshot;
      try {
        return await this.#sample(request, snapshot);
      } catch (error) {
        if (!isKind(error, 'lost', 'late')) throw error;
        await model.recover(generation, error);
        await this.#refresh();
      }
    }
  }

  #played(version = this.version): Snapshot {
    const { model, isolation } = this.#options;
    if (version === undefined) throw new BackendError(`policy '${model.name}' has not been published`);
    const playing = this.#snapshots.find((each) => each.version === version);
    if (playing === undefined) throw new BackendError(`version ${version} of policy '${model.name}' is not kept`);
    const stale = playing.generation === model.generation && playing.updates !== model.updates;
    if (stale && !isolation)
      throw new BackendError(
        `policy '${model.name}' was updated after it was published as version ${playing.version}, and on this server sampling ` +
          'older weights would undo the training since then; publish first',
      );
    return playing;
  }

  /** After a recovery the snapshots belong to a lost model: publishes the same versions again, from the new model. */
  #refresh(): Promise<void> {
    this.#again ??= (async () => {
      const { generation } = this.#options.model;
      const again: Snapshot[] = [];
      for (const each of this.#snapshots)
        again.push(each.generation === generation ? each : await this.#snapshot(each.version));
      this.#snapshots = again;
    })().finally(() => {
      this.#again = undefined;
    });
    return this.#again;
  }

  async #sample(request: GenerateRequest, { session, version }: Snapshot): Promise<Generation> {
    const { client, url, model, limits, extended } = this.#options;
    const { prompt, stopTokens, key, topP, topK } = request;
    const body = {
      sampling_session_id: session,
      seq_id: this.#requests++,
      num_samples: 1,
      prompt: { chunks: [{ type: 'encoded_text', tokens: prompt }] },
      sampling_params: {
        max_tokens: responseRoom(request, limits.context),
        seed: seedOf(request),
        ...(extended && { key }),
        temperature: temperatureOf(request),
        top_p: topP,
        top_k: topK === 0 ? -1 : topK,
        ...(stopTokens.length > 0 && { stop: stopTokens }),
      },
      type: 'sample',
    };
    const answer = await client.finish('asample', body, sampleAnswer);
    const { tokens, logprobs, stopped } = checkedSample(answer, request, limits, { server: url, policy: model.name });
    return {
      tokens,
      logprobs,
      finishReason: stopped ? 'stop' : 'length', // servers do not always report the right reason
      policyVersion: version,
    };
  }
}
