/** Converts samples to datums: T tokens become T - 1 inputs and as many targets, each input's next token. */

import { type GenerateRequest, isGreedy } from '@drmas/engine/contract';
import { type AnswerSource, checkedAnswer, idFault, logprobFault, type SequenceLimits } from '@drmas/engine/endpoints';
import { BackendError } from '@drmas/engine/errors';
import type { TrainingSample } from '@drmas/engine/nouns';
import type { z } from 'zod';
import type { GradientPath } from '../server-profile.js';
import type { Datum, PassInput, sampleAnswer, Tensor } from './answers.js';
import { TinkerError } from './tinker-failure.js';

/** Servers also accept sequences beyond these limits, and then break or train on something else. */
export type Limits = SequenceLimits;

/** @throws BackendError for a sequence or a token that a server would silently pad, cut or turn into NaN */
export function requireTokens(tokens: ArrayLike<number>, { vocabSize, context }: Limits, least: number): void {
  const { length } = tokens;
  if (length < least) throw new BackendError(`expected at least ${least} tokens, got ${length}`);
  if (length > context) throw new BackendError(`${length} tokens do not fit the model's context of ${context}`);
  for (let t = 0; t < length; t++) {
    const fault = idFault(tokens[t], vocabSize);
    if (fault !== undefined) throw new BackendError(`token ${t} is ${fault}`);
  }
}

/** @throws BackendError as `requireTokens`, and for arrays of other lengths or a temperature not the server's */
export function requireSample(sample: TrainingSample, limits: Limits): void {
  const { tokens, mask, behaviourLogprobs, advantages, temperature } = sample;
  requireTokens(tokens, limits, 2);
  for (const [name, { length }] of Object.entries({ mask, behaviourLogprobs, advantages }))
    if (length !== tokens.length) throw new BackendError(`${name} has ${length} entries, tokens ${tokens.length}`);
  if (temperature !== 1 && !isGreedy(temperature))
    throw new BackendError(`a Tinker server computes log-probs at temperature 1, the sample's is ${temperature}`);
  if (mask[0] !== 0)
    throw new BackendError('the first token of a sample cannot be predicted: there is no token before it');
}

/** A datum. Its further inputs are rows [T], one number for each token; each target has the number of its token. */
export function datumOf(tokens: Int32Array, inputs: Readonly<Record<string, ArrayLike<number>>>): Datum {
  const floats = (row: ArrayLike<number>): Tensor => tensor(Array.from(row).slice(1), 'float32');
  return {
    model_input: { chunks: [{ type: 'encoded_text', tokens: Array.from(tokens.subarray(0, -1)) }] },
    loss_fn_inputs: {
      target_tokens: tensor(Array.from(tokens.subarray(1)), 'int64'),
      ...Object.fromEntries(Object.entries(inputs).map(([name, row]) => [name, floats(row)])),
    },
  };
}

const tensor = (data: number[], dtype: Tensor['dtype']): Tensor => ({ data, dtype, shape: [data.length] });

/** The log-probs of a datum's answer as a row [T]: all targets, and 0 for the first token. */
export function rowOf(
  { logprobs }: { readonly logprobs: { readonly data: readonly (number | null)[] } },
  tokens: Int32Array,
): Float32Array {
  if (logprobs.data.length !== tokens.length - 1)
    throw new TinkerError(
      'malformed',
      `expected ${tokens.length - 1} log-probs of ${tokens.length} tokens, got ${logprobs.data.length}`,
    );
  const row = new Float32Array(tokens.length);
  logprobs.data.forEach((logprob, t) => {
    row[t + 1] = finiteLogprob(logprob, `the log-prob of target ${t}`);
  });
  return row;
}

/** @throws TinkerError `malformed`: a number that is missing or not finite fails the step and makes no update */
export function finite(value: number | null | undefined, what: string): number {
  if (typeof value === 'number' && Number.isFinite(value)) return value;
  throw new TinkerError('malformed', `${what} is not a finite number`);
}

/** @throws TinkerError `malformed` if it is not finite, or exceeds 0 by more than rounding */
function finiteLogprob(value: number | null | undefined, what: string): number {
  const fault = logprobFault(value);
  if (fault !== undefined) throw new TinkerError('malformed', `${what} is ${fault}`);
  return value as number;
}

/** @throws BackendError as `checkedAnswer` does */
export function checkedSample(
  { sequences }: z.output<typeof sampleAnswer>,
  request: GenerateRequest,
  limits: Limits,
  source: Pick<AnswerSource, 'server' | 'policy'>,
) {
  const [{ tokens, logprobs }] = sequences as [(typeof sequences)[number]];
  return checkedAnswer({ tokens, logprobs: logprobs ?? [] }, request, limits, {
    ...source,
    tokenField: (t) => `sequences[0].tokens[${t}]`,
    logprobField: (t) => `sequences[0].logprobs[${t}]`,
  });
}

export interface GradientRow {
  readonly tokens: Int32Array; // [T]
  /** d loss / d logprobs, 0 for tokens that the model did not write. */
  readonly gradient: Float32Array; // [T]
  /** Log-probs of all targets as the server computed them; 0 for the first token. */
  readonly logprobs: Float32Array; // [T]
}

/**
 * A batch with exactly the gradient of `loss = Σ gradient · logprobs` with respect to the weights.
 * @param datums The number of datums since the last update, in all batches: a server that averages divides by it
 */
export function gradientPass(rows: readonly GradientRow[], path: GradientPath, datums: number): PassInput {
  if (path === 'weights') {
    const weights = ({ gradient }: GradientRow) => gradient.map((g) => -g);
    return { data: rows.map((row) => datumOf(row.tokens, { weights: weights(row) })), loss_fn: 'cross_entropy' };
  }
  // At ratio 1 the gradient of -ratio · advantage is -advantage for each log-prob.
  const data = rows.map(({ tokens, gradient, logprobs }) => {
    const scale = path === 'scaled-ratio' ? (tokens.length - 1) * datums : 1;
    return datumOf(tokens, { logprobs, advantages: Float64Array.from(gradient, (g) => -g * scale) });
  });
  return { data, loss_fn: 'importance_sampling' };
}

/** Most datums and tokens in one request, so that bodies are only a few megabytes. */
const MOST_DATUMS = 128;
const MOST_TOKENS = 65_536;

/** Parts that fit one request each. @throws BackendError for an empty batch: some servers never answer one */
export function chunksOf<T extends { readonly tokens: Int32Array }>(rows: readonly T[]): T[][] {
  const chunks: T[][] = [];
  let tokens = Number.POSITIVE_INFINITY;
  for (const row of rows) {
    const last = chunks.at(-1);
    if (last === undefined || last.length >= MOST_DATUMS || tokens + row.tokens.length > MOST_TOKENS) {
      chunks.push([row]);
      tokens = row.tokens.length;
    } else {
      last.push(row);
      tokens += row.tokens.length;
    }
  }
  if (chunks.length === 0) throw new BackendError('the batch is empty');
  return chunks;
}
