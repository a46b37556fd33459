/** What a backend samples: requests, responses. */
import type { FinishReason } from '../core/episode.js';
import type { RandomKey } from '../core/random.js';

export interface Sampling {
  /** 0 takes the most probable token. */
  readonly temperature: number;
  /** Keep the smallest set of tokens whose probability reaches this; 1 keeps all. */
  readonly topP: number;
  /** Keep this many of the most probable tokens; 0 keeps all. */
  readonly topK: number;
  readonly maxTokens: number;
}

export interface GenerateRequest extends Sampling {
  readonly policy: string;
  readonly prompt: readonly number[]; // [P], at least one token
  readonly stopTokens: readonly number[];
  /** Names the random stream of this response. */
  readonly key: RandomKey;
}

export interface Generation {
  readonly tokens: number[]; // [R], the stop token included if one was sampled
  /** log softmax(logits / temperature) over the full vocabulary, before top-p and top-k. */
  readonly logprobs: number[]; // [R]
  readonly finishReason: FinishReason;
  readonly policyVersion: number;
}

export interface SampleBackend {
  /** @throws BackendError when the prompt does not fit the model's context. Rejects with the signal's reason when aborted. */
  generate(request: GenerateRequest, signal?: AbortSignal): Promise<Generation>;
  /** Makes the weights last published for `policy` the ones that `generate` uses. */
  sync(policy: string): Promise<{ version: number }>;
  /** Holds requests back until `resume`. */
  pause(): Promise<void>;
  resume(): Promise<void>;
  health(): Promise<{ ok: boolean; running: number; waiting: number }>;
}
