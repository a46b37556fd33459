/** Converts the protocol's datums to samples of the engine, and its losses to ours. */

import { idFault, type SequenceLimits } from '@drmas/engine/endpoints';
import { DialectError } from '@drmas/engine/errors';
import type { LossSpec } from '@drmas/engine/loss';
import type { TrainingSample } from '@drmas/engine/nouns';
import type { PassInput } from './bodies.js';

export interface TokenPass {
  readonly samples: TrainingSample[];
  readonly spec: LossSpec;
}

type Clips = { readonly low: number; readonly high: number };

/** Sums have no divisor, so the aggregation is not used. */
const aggregate = 'token-mean';

interface ProtocolLoss {
  /** Its inputs beside targets. */
  readonly inputs: readonly string[];
  spec(clips: Clips): LossSpec;
}

/** The losses of the protocol. A map, because clients name them: an object would also have `constructor`. */
const LOSSES: ReadonlyMap<string, ProtocolLoss> = new Map(
  Object.entries<ProtocolLoss>({
    cross_entropy: { inputs: [], spec: () => ({ type: 'cross-entropy', aggregate }) },
    importance_sampling: {
      inputs: ['logprobs', 'advantages'],
      spec: () => ({ type: 'ppo-clip', clip: Number.POSITIVE_INFINITY, aggregate }),
    },
    ppo: {
      inputs: ['logprobs', 'advantages'],
      spec: ({ low, high }) => ({ type: 'ppo-clip', clip: 0, clipLow: 1 - low, clipHigh: high - 1, aggregate }),
    },
    cispo: {
      inputs: ['logprobs', 'advantages'],
      spec: ({ low, high }) => ({ type: 'cispo', clipLow: 1 - low, clipHigh: high - 1, aggregate }),
    },
  }),
);

const LOSS_NAMES = [...LOSSES.keys()];

const BOUNDS = ['clip_low_threshold', 'clip_high_threshold'];

/** @throws DialectError with the datum and the expected value */
export function tokenPass({ data, loss_fn, loss_fn_config }: PassInput, limits: SequenceLimits): TokenPass {
  const loss = LOSSES.get(loss_fn);
  if (loss === undefined)
    throw refused(`there is no loss_fn '${loss_fn.slice(0, 100)}'; this server has ${LOSS_NAMES.join(', ')}`);
  for (const key of Object.keys(loss_fn_config ?? {}))
    if (!BOUNDS.includes(key))
      throw refused(`loss_fn_config has no '${key.slice(0, 100)}'; it has ${BOUNDS.join(' and ')}`);
  const low = Number(loss_fn_config?.clip_low_threshold ?? 0.8);
  const high = Number(loss_fn_config?.clip_high_threshold ?? 1.2);
  if (!(low >= 0 && low <= 1 && high >= 1)) throw refused(`expected clip thresholds around 1, got ${low} and ${high}`);
  const samples = data.map((datum, d) => sampleOf(datum, `datum ${d}`, loss.inputs, limits));
  return { samples, spec: loss.spec({ low, high }) };
}

/** N inputs and N targets, each the token after its input, are one sequence of N + 1 tokens. */
function sampleOf(
  { model_input, loss_fn_inputs }: PassInput['data'][number],
  where: string,
  needed: readonly string[],
  limits: SequenceLimits,
): TrainingSample {
  const length = model_input.chunks.reduce((sum, { tokens }) => sum + tokens.length, 0);
  if (length === 0) throw refused(`${where}: expected at least one token`);
  requireLength(length + 1, limits, where);
  const inputs = model_input.chunks.flatMap(({ tokens }) => Array.from(tokens));
  const row = (name: string): ArrayLike<number> | undefined => {
    const { data, shape } = (Object.hasOwn(loss_fn_inputs, name) && loss_fn_inputs[name]) || {};
    if (data === undefined) return undefined;
    const [size, ...further] = shape ?? [length];
    if (data.length !== length || size !== length || further.length > 0)
      throw refused(`${where}: ${name} has the shape [${shape ?? data.length}], expected [${length}]`);
    const wrong = Array.prototype.findIndex.call(data, (value: number) => !Number.isFinite(Math.fround(value)));
    if (wrong >= 0) throw refused(`${where}: ${name} ${wrong} is ${data[wrong]}, expected a finite number`);
    return data;
  };
  const targets = row('target_tokens');
  if (targets === undefined) throw refused(`${where}: target_tokens is missing`);
  for (const name of needed) if (row(name) === undefined) throw refused(`${where}: ${name} is missing`);
  for (let t = 0; t + 1 < length; t++)
    if (targets[t] !== inputs[t + 1])
      throw refused(
        `${where}: target ${t} is ${targets[t]}, but the next input is ${inputs[t + 1]}; this server learns only the next tokens of a sequence`,
      );
  const ids = [...inputs, targets[length - 1] as number];
  requireIds(ids, limits, where); // before they are made 32-bit integers, which would wrap others to right ones
  const tokens = Int32Array.from(ids);
  const after = (values: ArrayLike<number>) => Float32Array.from([0, ...Array.from(values)]);
  const weights = after(row('weights') ?? new Array(length).fill(1));
  const advantages = row('advantages');
  return {
    tokens,
    mask: new Uint8Array(length + 1).fill(1, 1),
    behaviourLogprobs: after(row('logprobs') ?? new Array(length).fill(0)),
    advantages: advantages === undefined ? weights : after(advantages).map((a, t) => a * (weights[t] as number)),
    temperature: 1,
    policyVersion: 0,
    agent: '',
  };
}

/** @throws DialectError for an id outside the vocabulary, and for more tokens than the context has */
export function requireIds(tokens: ArrayLike<number>, limits: SequenceLimits, where: string): void {
  requireLength(tokens.length, limits, where);
  for (let t = 0; t < tokens.length; t++) {
    const fault = idFault(tokens[t], limits.vocabSize);
    if (fault !== undefined) throw refused(`${where}: token ${t} is ${fault}`);
  }
}

function requireLength(length: number, { context }: SequenceLimits, where: string): void {
  if (length > context) throw refused(`${where}: ${length} tokens do not fit the model's context of ${context}`);
}

/** A wrong request. It would fail again. */
export const refused = (message: string) => new DialectError(400, 'refused', message);
