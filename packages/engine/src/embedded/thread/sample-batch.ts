import { ArgumentError, given } from '../../errors.js';
import type { TrainingSample } from '../../nouns.js';

/** The numbers of a sample, [T] each. It has the last two when the loss asks for them. */
const FIELDS = {
  tokens: Int32Array,
  mask: Uint8Array,
  behaviourLogprobs: Float32Array,
  advantages: Float32Array,
  referenceLogprobs: Float32Array,
  proximalLogprobs: Float32Array,
} as const;
type Field = keyof typeof FIELDS;

/**
 * Samples as a message to the engine's thread. All samples share one buffer per field, so that they can be transferred
 * without copying.
 */
export interface SampleBatch {
  readonly lengths: Int32Array; // [S]
  /** [sum of lengths] each; those that no sample has are missing. */
  readonly fields: { readonly [Name in Field]?: InstanceType<(typeof FIELDS)[Name]> };
  readonly rest: readonly Omit<TrainingSample, Field>[]; // [S]
}

/** @throws ArgumentError when some samples have an optional field and others lack it */
export function packSamples(samples: readonly TrainingSample[]): SampleBatch {
  const lengths = Int32Array.from(samples, ({ tokens }) => tokens.length);
  const total = lengths.reduce((sum, length) => sum + length, 0);
  const names = (Object.keys(FIELDS) as Field[]).filter((name) => hasAll(samples, name));
  const fields = names.map((name) => {
    const all = new FIELDS[name](total);
    let offset = 0;
    for (const { [name]: numbers = [], tokens } of samples) {
      all.set(numbers, offset);
      offset += tokens.length;
    }
    return [name, all];
  });
  const rest = samples.map(({ temperature, policyVersion, agent, episodeTokens, spans }) => ({
    temperature,
    policyVersion,
    agent,
    ...given({ episodeTokens, spans }),
  }));
  return { lengths, fields: Object.fromEntries(fields), rest };
}

function hasAll(samples: readonly TrainingSample[], name: Field): boolean {
  const having = samples.filter((sample) => sample[name] !== undefined).length;
  if (having > 0 && having < samples.length)
    throw new ArgumentError(`${having} of ${samples.length} samples have ${name}: expected all or none`);
  return having > 0;
}

export function unpackSamples({ lengths, rest, fields }: SampleBatch): TrainingSample[] {
  let end = 0;
  return rest.map((facts, s) => {
    const start = end;
    end += lengths[s] as number;
    const numbers = Object.entries(fields).map(([name, all]) => [name, all.subarray(start, end)]);
    return { ...facts, ...Object.fromEntries(numbers) };
  });
}

/** The buffers to transfer. The sender cannot use the batch afterwards. */
export const transferables = ({ lengths, fields }: SampleBatch): ArrayBufferLike[] =>
  [lengths, ...Object.values(fields)].map(({ buffer }) => buffer);
