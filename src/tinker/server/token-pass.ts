/** Converts the protocol's datums to samples of the engine, and its losses to ours. */
import { DialectError } from '../../base/errors.js';
import type { TrainingSample } from '../../base/nouns.js';
import type { LossSpec } from '../../engine/loss.js';
import type { PassInput } from './bodies.js';

/** The limits of a model's input. */
export interface Limits {
  readonly vocabSize: number;
  /** Longest sequence in tokens. */
  readonly context: number;
}

export interface TokenPass {
  readonly samples: TrainingSample[];
  readonly spec: LossSpec;
}

type Clips = { readonly low: number; readonly high: number };

/** Sums have no divisor, so the aggregation is not used. */
const aggregate = 'token-mean';

/** The losses of the protocol: the inputs of each beside targets, and the equal loss of ours. */
const LOSSES: Readonly<Record<string, { readonly inputs: readonly string[]; spec(clips: Clips): LossSpec }>> = {
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
};

const LOSS_NAMES = Object.keys(LOSSES);

const BOUNDS = ['clip_low_threshold', 'clip_high_threshold'];

/** @throws DialectError with the datum and the expected value */
export function tokenPass({ data, loss_fn, loss_fn_config }: PassInput, limits: Limits): TokenPass {
  const loss = LOSSES[loss_fn];
  if (loss === undefined) throw refused(`there is no loss_fn '${loss_fn}'; this server has ${LOSS_NAMES.join(', ')}`);
  for (const key of Object.keys(loss_fn_config ?? {}))
    if (!BOUNDS.includes(key)) throw refused(`loss_fn_config has no '${key}'; it has ${BOUNDS.join(' and ')}`);
  const { clip_low_threshold: low = 0.8, clip_high_threshold: high = 1.2 } = loss_fn_config ?? {};
  if (!(low >= 0 && low <= 1 && high >= 1)) throw refused(`expected clip thresholds around 1, got ${low} and ${high}`);
  const samples = data.map((datum, d) => sampleOf(datum, `datum ${d}`, loss.inputs, limits));
  return { samples, spec: loss.spec({ low, high }) };
}

/** N inputs and N targets, each the token after its input, are one sequence of N + 1 tokens. */
function sampleOf(
  { model_input, loss_fn_inputs }: PassInput['data'][number],
  where: string,
  needed: readonly string[],
  limits: Limits,
): TrainingSample {
  const inputs = model_input.chunks.flatMap(({ tokens }) => Array.from(tokens));
  const { length } = inputs;
  const row = (name: string): ArrayLike<number> | undefined => {
    const tensor = loss_fn_inputs[name];
    if (tensor === undefined) return undefined;
    if (tensor.data.length === length && (tensor.shape?.length ?? 1) === 1) return tensor.data;
    throw refused(`${where}: ${name} has the shape [${tensor.shape ?? tensor.data.length}], expected [${length}]`);
  };
  const targets = row('target_tokens');
  if (targets === undefined) throw refused(`${where}: target_tokens is missing`);
  for (const name of needed) if (row(name) === undefined) throw refused(`${where}: ${name} is missing`);
  for (let t = 0; t + 1 < length; t++)
    if (targets[t] !== inputs[t + 1])
      throw refused(
        `${where}: target ${t} is ${targets[t]}, but the next input is ${inputs[t + 1]}; this server learns only the next tokens of a sequence`,
      );
  const tokens = Int32Array.from([...inputs, targets[length - 1] ?? -1]);
  requireIds(tokens, limits, where);
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
export function requireIds(tokens: ArrayLike<number>, { vocabSize, context }: Limits, where: string): void {
  if (tokens.length > context)
    throw refused(`${where}: ${tokens.length} tokens do not fit the model's context of ${context}`);
  for (let t = 0; t < tokens.length; t++) {
    const id = tokens[t] as number;
    if (!(Number.isInteger(id) && id >= 0 && id < vocabSize))
      throw refused(`${where}: token ${t} is ${id}, which is not in the vocabulary of ${vocabSize}`);
  }
}

/** A wrong request. It would fail again. */
export const refused = (message: string) => new DialectError(400, 'refused', message);
