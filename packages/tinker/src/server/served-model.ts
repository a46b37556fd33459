/** A model that a client trains: an adapter on a base, with its requests in the order of their arrival. */

import { type AdapterSettings, type DecoderConfig, PROJECTIONS } from '@drmas/engine/contract';
import type { EmbeddedPolicy } from '@drmas/engine/embedded';
import { BackendError, DialectError, NonFiniteError } from '@drmas/engine/errors';
import type { z } from 'zod';
import type { createModelBody } from './bodies.js';
import { mostRank } from './memory-budget.js';
import { refused, type TokenPass } from './token-pass.js';
import type { ModelDescription } from './weights-store.js';

/** The number of earlier requests that are recognised by their number. */
const REMEMBERED = 256;

interface AdamParams {
  readonly learning_rate: number;
  readonly beta1: number;
  readonly beta2: number;
  readonly eps: number;
  readonly weight_decay: number;
  readonly grad_clip_norm: number;
}

/** The log-probs of every target of a batch, a row per datum. */
export interface PassOutput {
  readonly loss: number;
  readonly logprobs: readonly Float32Array[];
}

const ATTENTION = PROJECTIONS.slice(0, 4);
const FEED_FORWARD = PROJECTIONS.slice(4);

/** The alpha that other servers of the protocol give adapters. */
const ALPHA = 32;
/** The rank of an adapter whose client names none. */
const RANK = 32;

/** @throws DialectError for a rank beyond the model's widths */
export function describedModel(
  { base_model: baseModel, lora_config }: z.output<typeof createModelBody>,
  config: DecoderConfig,
): ModelDescription {
  const most = mostRank(config);
  const { rank = Math.min(RANK, most), alpha, train_attn: attention, train_mlp: feedForward } = lora_config;
  if (rank > most)
    throw refused(`lora_config.rank: expected at most ${most}, the largest width of the model, found ${rank}`);
  return { baseModel, rank, alpha: alpha ?? ALPHA, attention, feedForward };
}

/** @throws DialectError for an adapter without targets */
export function adapterOf({ rank, alpha, attention, feedForward }: ModelDescription): AdapterSettings {
  const targets = [...(attention ? ATTENTION : []), ...(feedForward ? FEED_FORWARD : [])];
  if (targets.length === 0) throw refused('expected an adapter of train_attn, of train_mlp or of both');
  return { rank, alpha, targets };
}

type ServedModelParts = Pick<ServedModel, 'id' | 'session' | 'request' | 'about' | 'policy' | 'release'>;

export class ServedModel {
  readonly id: string;
  readonly session: string;
  /** The request that made it. */
  readonly request: string;
  about: ModelDescription;
  policy: EmbeddedPolicy;
  /** Gives back the memory that was taken for it. */
  readonly release: () => void;
  #tail: Promise<unknown> = Promise.resolve();
  /** By number: the body's digest and the request's future. */
  readonly #numbered = new Map<number, { readonly digest: string; readonly id: string }>();

  constructor({ id, session, request, about, policy, release }: ServedModelParts) {
    this.id = id;
    this.session = session;
    this.request = request;
    this.about = about;
    this.policy = policy;
    this.release = release;
  }

  /** Runs work after all earlier requests. */
  inOrder<T>(work: () => Promise<T>): Promise<T> {
    const done = this.#tail.then(work);
    this.#tail = done.catch(() => {});
    return done;
  }

  /**
   * A request that is sent again with its number is the same request.
   * @throws DialectError 409 for another request with the same number
   */
  once(number: number | null | undefined, digest: string, submit: () => string): string {
    if (number === null || number === undefined) return submit();
    const earlier = this.#numbered.get(number);
    if (earlier !== undefined && earlier.digest !== digest)
      throw new DialectError(409, 'reused', 'Training request sequence number was reused');
    if (earlier !== undefined) return earlier.id;
    const id = submit();
    this.#numbered.set(number, { digest, id });
    for (const old of this.#numbered.keys()) {
      if (this.#numbered.size <= REMEMBERED) break;
      this.#numbered.delete(old);
    }
    return id;
  }

  /** Log-probs. With `backward` also the gradient of the sum of all token losses, which is kept until the next step. */
  async pass({ samples, spec }: TokenPass, { backward }: { readonly backward: boolean }): Promise<PassOutput> {
    const { loss, logprobs } = backward
      ? await this.policy.addTokenLosses(samples, spec)
      : { loss: 0, logprobs: await this.policy.logprobs(samples) };
    return { loss, logprobs: logprobs.map((row) => row.subarray(1)) };
  }

  /**
   * Weights and optimiser do not change in a step that fails.
   * @throws BackendError if the gradient is not finite; DialectError if the update is not
   */
  async optimStep(adam: AdamParams): Promise<number | undefined> {
    const settings = {
      optimizer: {
        type: 'adamw',
        learningRate: adam.learning_rate,
        beta1: adam.beta1,
        beta2: adam.beta2,
        epsilon: adam.eps,
        weightDecay: adam.weight_decay,
      },
      clipNorm: adam.grad_clip_norm,
      undoNonFinite: true,
    };
    const result = await this.policy.optimStep(settings).catch((error: unknown) => {
      if (!(error instanceof NonFiniteError)) throw error;
      throw refused(
        `the update is not finite and was undone: ${error.message}; learning_rate is ${adam.learning_rate}`,
      );
    });
    if (!result.applied) throw new BackendError('the gradient is not finite, so the update was skipped');
    return result.norm;
  }
}
