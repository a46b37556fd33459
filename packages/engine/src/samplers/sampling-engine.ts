/** The interface of a server that samples. Each kind of server has one file that implements it. */

import type { AnsweredTokens, AnswerSource } from '../backends/answered-tokens.js';
import type { GenerateRequest } from '../contract/sampling.js';
import { BackendError } from '../errors.js';
import type { FinishReason } from '../nouns.js';

/** Weights in a folder that the engine can read. */
export interface PushedWeights {
  /** The unique name of these weights: policy and version. */
  readonly name: string;
  readonly directory: string;
  /** An adapter in PEFT's layout, or a whole model in Hugging Face's. */
  readonly kind: 'adapter' | 'whole';
}

/**
 * A response as the engine wrote it: the stop token included if the engine keeps it, the log-probs at temperature 1.
 * Nothing in it has been checked.
 */
export interface EngineAnswer extends AnsweredTokens {
  readonly finishReason: FinishReason;
}

export type EngineRequest = Omit<GenerateRequest, 'version' | 'key'> & { readonly seed: number };

/** An engine's places of tokens and log-probs in its replies, and its address. */
export type EngineSource = Omit<AnswerSource, 'policy'>;

export interface SamplingEngine {
  readonly source: EngineSource;
  /** The kind of weights that it can load while it runs. */
  readonly kinds: readonly PushedWeights['kind'][];
  /** The names under which the engine serves the model that it was started with. @throws BackendError */
  served(): Promise<readonly string[]>;
  /** Loads weights, unless the engine has them. @throws BackendError */
  load(weights: PushedWeights): Promise<void>;
  /** Unloads weights that are no longer sampled from. */
  unload(weights: PushedWeights, signal?: AbortSignal): Promise<void>;
  /**
   * @throws StaleWeights if the engine has other weights, or lost these
   * @throws BackendError
   */
  generate(request: EngineRequest, weights: PushedWeights, signal: AbortSignal): Promise<EngineAnswer>;
}

/** Thrown if an engine no longer has the weights it was given: it was restarted, or another program replaced them. */
export class StaleWeights extends BackendError {}
