import { ArgumentError } from '../../errors.js';
import type { TrainingSample } from '../../nouns.js';

/** Log-probs that samples have when the loss asks for them. */
const OPTIONAL = ['referenceLogprobs', 'proximalLogprobs'] as const;
type Rest = Pick<TrainingSample, 'temperature' | 'policyVersion' | 'agent' | 'episodeTokens' | 'spans'>;
type OptionalField = { readonly [Name in (typeof OPTIONAL)[number]]?: Float32Array };

/**
 * Samples as a message to the engine's thread. All samples share one buffer per field, so that they can be transferred
 * without copying.
 */
export interface SampleBatch {
  readonly lengths: Int32Array; // [S]
  readonly tokens: Int32Array; // [sum of lengths], and so on
  readonly mask: Uint8Array;
  readonly behaviourLogprobs: Float32Array;
  readonly advantages: Float32Array;
  /** Missing if no sample has them. */
  readonly optional: OptionalField;
  readonly rest: readonly Rest[]; // [S]
}

/** @throws ArgumentError when some samples have an optional field and others lack it */
export function packSamples(samples: readonly TrainingSample[]): SampleBatch {
  const lengths = Int32Array.from(samples, ({ tokens }) => tokens.length);
  const total = lengths.reduce((sum, length) => sum + length, 0);
  const batch = {
    lengths,
    tokens: new Int32Array(total),
    mask: new Uint8Array(total),
    behaviourLogprobs: new Float32Array(total),
    advantages: new Float32Array(total),
    optional: Object.fromEntries(
      OPTIONAL.flatMap((name) => (hasAll(samples, name) ? [[name, new Float32Array(total)]] : [])),
    ) as OptionalField,
    rest: samples.map(({ temperature, policyVersion, agent, episodeTokens, spans }) => ({
      temperature,
      policyVersion,
      agent,
      ...(episodeTokens === undefined ? {} : { episodeTokens }),
      ...(spans === undefined ? {} : { spans }),
    })),
  };
  let offset = 0;
  for (const { tokens, mask, behaviourLogprobs, advantages, ...sample } of samples) {
    batch.tokens.set(tokens, offset);
    batch.mask.set(mask, offset);
    batch.behaviourLogprobs.set(behaviourLogprobs, offset);
    batch.advantages.set(advantages, offset);
    for (const name of OPTIONAL) batch.optional[name]?.set(sample[name] ?? [], offset);
    offset += tokens.length;
  }
  return batch;
}

function hasAll(samples: readonly TrainingSample[], name: keyof OptionalField): boolean {
  const having = samples.filter((sample) => sample[name] !== undefined).length;
  if (having > 0 && having < samples.length)
    throw new ArgumentError(`${having} of ${samples.length} samples have ${name}: expected all or none`);
  return having > 0;
}

export function unpackSamples({ lengths, rest, optional, ...fields }: SampleBatch): TrainingSample[] {
  let offset = 0;
  return rest.map((facts, s) => {
    const [start, end] = [offset, offset + (lengths[s] as number)];
    offset = end;
    return {
      ...facts,
      tokens: fields.tokens.subarray(start, end),
      mask: fields.mask.subarray(start, end),
      behaviourLogprobs: fields.behaviourLogprobs.subarray(start, end),
      advantages: fields.advantages.subarray(start, end),
      ...Object.fromEntries(Object.entries(optional).map(([name, all]) => [name, all.subarray(start, end)])),
    };
  });
}

/** The buffers to transfer. The sender cannot use the batch afterwards. */
export function transferables({
  lengths,
  tokens,
  mask,
  behaviourLogprobs,
  advantages,
  optional,
}: SampleBatch): ArrayBufferLike[] {
  return [lengths, tokens, mask, behaviourLogprobs, advantages, ...Object.values(optional)].map(({ buffer }) => buffer);
}
