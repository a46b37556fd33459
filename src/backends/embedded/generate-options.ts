import type { Sampling } from '../../contract/sampling.js';
import type { FinishReason } from '../../core/episode.js';
import { ArgumentError } from '../../core/errors.js';

/** Token ids, in the vocabulary of the policy. */
export type TokenIds = readonly number[] | Int32Array;

/** A request to `LoadedPolicy.generate`. */
export interface GenerateOptions {
  /** The ids to go on from. */
  readonly prompt: TokenIds; // [P], at least one
  /** The agent's where an agent was exported with the weights; else it must be given. */
  readonly maxTokens?: number;
  /** 0 takes the most probable token each time. The agent's where one was exported; else it must be given. */
  readonly temperature?: number;
  /** Equal seeds (and prompts) give equal tokens, whatever else is running. */
  readonly seed: number;
  /** Goes on after the tokens that end a text. */
  readonly ignoreEos?: boolean;
}

/** What `LoadedPolicy.generate` returns. */
export interface GeneratedText {
  readonly tokens: number[]; // [R], the stop token included if one was sampled
  /**
   * log softmax(logits / temperature) of each token over the full vocabulary; at temperature 0: log softmax(logits).
   */
  readonly logprobs: number[]; // [R]
  readonly finishReason: FinishReason;
}

/** The options of `LoadedPolicy.answer`. Sampling that is not given is the agent's. */
export interface AnswerOptions extends Partial<Sampling> {
  /** Equal seeds (and conversations) give equal answers, whatever else is running. */
  readonly seed: number;
  /** Receives the text while it is written. */
  readonly onText?: (text: string) => void;
  /** Ends the answer; the promise rejects with its reason. */
  readonly signal?: AbortSignal;
}

/** What `LoadedPolicy.answer` returns. */
export interface AnsweredText extends GeneratedText {
  /** The answer without the token that ended it. */
  readonly text: string;
}

/** Checks what a caller chose. @throws ArgumentError naming the option that is wrong and what was expected */
export function checkedSampling(chosen: Partial<Sampling>, seed: number): Sampling {
  const { maxTokens = Number.NaN, temperature = Number.NaN, topP = 1, topK = 0 } = chosen;
  const check = (name: string, test: boolean, expected: string, value: unknown) => {
    if (!test) throw new ArgumentError(`${name}: expected ${expected}, found ${value}`);
  };
  const { isSafeInteger } = Number;
  check('maxTokens', isSafeInteger(maxTokens) && maxTokens >= 1, 'a whole number of at least 1', chosen.maxTokens);
  check('temperature', temperature >= 0 && temperature < Infinity, 'a number of at least 0', chosen.temperature);
  check('topP', topP > 0 && topP <= 1, 'a number above 0 and at most 1', topP);
  check('topK', isSafeInteger(topK) && topK >= 0, 'a whole number of at least 0', topK);
  check('seed', isSafeInteger(seed), 'a whole number', seed);
  return { maxTokens, temperature, topP, topK };
}
