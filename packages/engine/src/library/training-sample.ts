/** Training examples as a program writes them, and the checks that they pass before the engine gets them. */

import type { DecoderConfig } from '../contract/architecture.js';
import type { TokenIds } from '../embedded/generate-options.js';
import { requireTokens } from '../embedded/token-checks.js';
import { ArgumentError, given, type OptionNames, requireKnown } from '../errors.js';
import type { Span, TrainingSample } from '../nouns.js';
import type { Completion } from './completion.js';

/** A sequence of T tokens to score, with a mask of the tokens that the model wrote. */
export interface ScoredSample {
  /** Prompt and response. */
  readonly tokens: TokenIds; // [T]
  /** 1 for a token that the model wrote, 0 for the others. The first token belongs to the prompt: its mask is 0. */
  readonly mask: ArrayLike<number>; // [T]
  /** The temperature of the log-probs. Default 1. */
  readonly temperature?: number | undefined;
}

/** A training example. Entries of its lists count only where the mask is 1. */
export interface Sample extends ScoredSample {
  /**
   * The log-prob of each token at the time of sampling, at the sample's temperature. Policy losses need them;
   * `cross-entropy` does not.
   */
  readonly behaviourLogprobs?: ArrayLike<number> | undefined; // [T]
  /** The advantage of each token. For `cross-entropy` it is the token's weight, at least 0, by default 1. */
  readonly advantages?: ArrayLike<number> | undefined; // [T]
  /** The log-prob of each token under a reference model; the option `kl` needs them. */
  readonly referenceLogprobs?: ArrayLike<number> | undefined; // [T]
  /** The log-prob of each token before the update; a loss with `importanceCorrection` needs them. */
  readonly proximalLogprobs?: ArrayLike<number> | undefined; // [T]
  /**
   * The responses in a sequence of several turns, in order: positions start <= t < end. Each is one row of the loss.
   * Default: the whole sequence is one row.
   */
  readonly spans?: readonly Span[] | undefined;
  /** The number of tokens that the model wrote in the whole episode, for the aggregation `episode-mean`. */
  readonly episodeTokens?: number | undefined;
}

/**
 * The training example of a completion.
 * @param advantage One number for all tokens of the response, or a list with one number for each: [R]
 * @throws ArgumentError if the list has another length than the response
 *
 * @example
 * ```ts
 * import { type Completion, trainingSample } from 'drmas/engine';
 *
 * const samplesOf = (group: Completion[], advantages: number[]) =>
 *   group.map((completion, i) => trainingSample(completion, advantages[i] ?? 0));
 * ```
 */
export function trainingSample(completion: Completion, advantage: number | ArrayLike<number>): Sample {
  const { prompt, tokens, logprobs, temperature } = completion;
  const advantages = typeof advantage === 'number' ? new Float32Array(tokens.length).fill(advantage) : advantage;
  if (advantages.length !== tokens.length)
    throw new ArgumentError(
      `advantage: expected ${tokens.length} numbers, one for each token, found ${advantages.length}`,
    );
  return {
    ...maskedSequence(prompt, tokens),
    behaviourLogprobs: afterPrompt(prompt, logprobs),
    advantages: afterPrompt(prompt, advantages),
    temperature,
  };
}

export function maskedSequence(prompt: TokenIds, response: TokenIds): Pick<Sample, 'tokens' | 'mask'> {
  const tokens = Int32Array.from([...prompt, ...response]);
  return { tokens, mask: new Uint8Array(tokens.length).fill(1, prompt.length) };
}

/** Numbers of a response, with zeros for the prompt before it: [P + R]. */
function afterPrompt(prompt: TokenIds, numbers: ArrayLike<number>): Float32Array {
  const all = new Float32Array(prompt.length + numbers.length);
  all.set(numbers, prompt.length);
  return all;
}

const PER_TOKEN = ['behaviourLogprobs', 'advantages', 'referenceLogprobs', 'proximalLogprobs'] as const;
type PerToken = (typeof PER_TOKEN)[number];

const SAMPLE: OptionNames<Sample> = {
  ...{ tokens: true, mask: true, temperature: true, spans: true, episodeTokens: true },
  ...{ behaviourLogprobs: true, advantages: true, referenceLogprobs: true, proximalLogprobs: true },
};

export interface SampleNeeds {
  readonly model: string;
  readonly config: DecoderConfig;
  readonly required: readonly PerToken[];
  /** Whether advantages are weights: at least 0, and 1 by default. */
  readonly weighted?: boolean;
}

/** Samples as the engine takes them. @throws ArgumentError naming the sample, its field and the position */
export function checkedSamples(samples: readonly Sample[], needs: SampleNeeds): TrainingSample[] {
  if (samples.length === 0) throw new ArgumentError('samples: expected at least one');
  return samples.map((sample, i) => checkedSample(sample, `samples[${i}]`, needs));
}

function checkedSample(sample: Sample, what: string, { model, config, required, weighted = false }: SampleNeeds) {
  requireKnown(sample, SAMPLE, `${what} has the unknown field`);
  const { tokens, mask, spans, temperature = 1, episodeTokens } = sample;
  requireTokens(`${what}.tokens`, tokens, config);
  requireNumbers(`${what}.mask`, mask, tokens.length, 'expected 0 or 1', (value) => value === 0 || value === 1);
  if (mask[0] !== 0)
    throw new ArgumentError(`${what}.mask[0]: expected 0, since nothing comes before the first token that predicts it`);
  if (!(temperature >= 0 && temperature < Infinity))
    throw new ArgumentError(`${what}.temperature: expected a number of at least 0, found ${temperature}`);
  if (episodeTokens !== undefined && !(Number.isSafeInteger(episodeTokens) && episodeTokens >= 1))
    throw new ArgumentError(`${what}.episodeTokens: expected a whole number of at least 1, found ${episodeTokens}`);
  const lists: Partial<Record<PerToken, Float32Array>> = {};
  for (const name of PER_TOKEN) {
    const list = sample[name];
    if (list === undefined && required.includes(name))
      throw new ArgumentError(`${what}.${name}: expected ${tokens.length} numbers, one for each token, found none`);
    if (list === undefined) continue;
    const isRight = (value: number, t: number) =>
      mask[t] === 0 || (Number.isFinite(value) && !(weighted && name === 'advantages' && value < 0));
    const expected = weighted && name === 'advantages' ? 'expected a number of at least 0' : 'expected a finite number';
    requireNumbers(`${what}.${name}`, list, tokens.length, expected, isRight);
    lists[name] = Float32Array.from(list);
  }
  const written = Uint8Array.from(mask);
  return {
    behaviourLogprobs: new Float32Array(tokens.length),
    advantages: Float32Array.from(written),
    ...lists,
    tokens: Int32Array.from(tokens),
    mask: written,
    temperature,
    policyVersion: 0,
    agent: model,
    ...given({ spans, episodeTokens }),
  };
}

function requireNumbers(
  what: string,
  list: ArrayLike<number>,
  length: number,
  expected: string,
  isRight: (value: number, t: number) => boolean,
): void {
  if (list.length !== length)
    throw new ArgumentError(`${what}: expected ${length} numbers, one for each token, found ${list.length}`);
  for (let t = 0; t < length; t++)
    if (!isRight(list[t] as number, t)) throw new ArgumentError(`${what}[${t}]: ${expected}, found ${list[t]}`);
}
