import type { ContentWithCalls } from '../backends/agent-reply.js';
import type { Sampling } from '../contract/sampling.js';
import { ArgumentError, type OptionNames, requireKnown } from '../errors.js';
import type { FinishReason, Tool } from '../nouns.js';

/** Token ids, in the vocabulary of the policy. */
export type TokenIds = readonly number[] | Int32Array;

/** A request to `LoadedPolicy.generate`. */
export interface GenerateOptions {
  /** The ids to continue. */
  readonly prompt: TokenIds; // [P], at least one
  /** By default the exported agent's; required for weights without an agent. */
  readonly maxTokens?: number;
  /** 0 takes the most probable token each time. By default the exported agent's; required for weights without one. */
  readonly temperature?: number;
  /** Equal seeds (and prompts) give equal tokens, whatever else is running. At temperature 0 it may be left out. */
  readonly seed?: number;
  /** Continues after the tokens that end a text. */
  readonly ignoreEos?: boolean;
}

/** The result of `LoadedPolicy.generate`. */
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
  /** Equal seeds (and conversations) give equal answers, whatever else is running. At temperature 0 it may be left out.
   * */
  readonly seed?: number;
  /** The tools that the model may call. Your program runs the calls. */
  readonly tools?: readonly Tool[];
  /** Receives the text while it is written. */
  readonly onText?: (text: string) => void;
  /** Ends the answer; the promise rejects with its reason. */
  readonly signal?: AbortSignal;
}

/** The result of `LoadedPolicy.answer`. */
export interface AnsweredText extends GeneratedText, ContentWithCalls {
  /** The whole answer without the token that ended it. */
  readonly text: string;
}

const SAMPLING: OptionNames<Sampling> = { maxTokens: true, temperature: true, topP: true, topK: true };

/** Checks a caller's sampling options. @throws ArgumentError naming the wrong option and the expected value */
export function checkedSampling(chosen: Partial<Sampling>, seed: number | undefined): Sampling {
  requireKnown(chosen, SAMPLING);
  const { maxTokens = Number.NaN, temperature = Number.NaN, topP = 1, topK = 0 } = chosen;
  const check = (name: string, test: boolean, expected: string, value: unknown) => {
    if (!test) throw new ArgumentError(`${name}: expected ${expected}, found ${value}`);
  };
  const { isSafeInteger } = Number;
  check('maxTokens', isSafeInteger(maxTokens) && maxTokens >= 1, 'a whole number of at least 1', chosen.maxTokens);
  check('temperature', temperature >= 0 && temperature < Infinity, 'a number of at least 0', chosen.temperature);
  check('topP', topP > 0 && topP <= 1, 'a number above 0 and at most 1', topP);
  check('topK', isSafeInteger(topK) && topK >= 0, 'a whole number of at least 0', topK);
  // The most probable token needs no chance.
  check('seed', (seed === undefined && temperature === 0) || isSafeInteger(seed), 'a whole number', seed);
  return { maxTokens, temperature, topP, topK };
}
