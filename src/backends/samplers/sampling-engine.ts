/** What a server that samples is asked for. One file for each kind of server keeps to it. */
import type { GenerateRequest } from '../../contract/sampling.js';
import type { FinishReason } from '../../core/episode.js';
import { BackendError } from '../../core/errors.js';

/** Weights as they lie in a folder for the engine. */
export interface PushedWeights {
  /** Names policy and version, and is given to no other weights. */
  readonly name: string;
  readonly directory: string;
  /** An adapter in PEFT's layout, or a whole model in Hugging Face's. */
  readonly kind: 'adapter' | 'whole';
}

export interface EngineAnswer {
  readonly tokens: readonly number[]; // [R], the stop token included where the engine keeps it
  /** log softmax(logits) at temperature 1. */
  readonly logprobs: readonly number[]; // [R]
  readonly finishReason: FinishReason;
}

export type EngineRequest = Omit<GenerateRequest, 'version' | 'key'> & { readonly seed: number };

export interface SamplingEngine {
  /** The weights that it takes while it runs. */
  readonly kinds: readonly PushedWeights['kind'][];
  /** The names under which the engine serves the model that it was started with. @throws BackendError */
  served(): Promise<readonly string[]>;
  /** Makes weights playable. Done twice it does nothing twice. @throws BackendError */
  load(weights: PushedWeights): Promise<void>;
  /** Gives back the place of weights that nobody plays any more. */
  unload(weights: PushedWeights, signal?: AbortSignal): Promise<void>;
  /**
   * @throws StaleWeights where the engine plays others, or lost them
   * @throws BackendError
   */
  generate(request: EngineRequest, weights: PushedWeights, signal: AbortSignal): Promise<EngineAnswer>;
}

/** Raised when an engine does not have the weights that it was given: it was started anew, or somebody else pushed. */
export class StaleWeights extends BackendError {}
