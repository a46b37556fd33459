import type { TrainingSample } from '../../core/sample.js';

/**
 * Samples on their way to the engine's thread: one buffer a field instead of several a sample, so that they can be handed
 * over without copying.
 */
export interface SampleBatch {
  readonly lengths: Int32Array; // [S]
  readonly tokens: Int32Array; // [sum of lengths], and so on
  readonly mask: Uint8Array;
  readonly behaviourLogprobs: Float32Array;
  readonly advantages: Float32Array;
  readonly rest: readonly Pick<TrainingSample, 'temperature' | 'policyVersion' | 'agent'>[]; // [S]
}

export function packSamples(samples: readonly TrainingSample[]): SampleBatch {
  const lengths = Int32Array.from(samples, ({ tokens }) => tokens.length);
  const total = lengths.reduce((sum, length) => sum + length, 0);
  const batch = {
    lengths,
    tokens: new Int32Array(total),
    mask: new Uint8Array(total),
    behaviourLogprobs: new Float32Array(total),
    advantages: new Float32Array(total),
    rest: samples.map(({ temperature, policyVersion, agent }) => ({ temperature, policyVersion, agent })),
  };
  let offset = 0;
  for (const { tokens, mask, behaviourLogprobs, advantages } of samples) {
    batch.tokens.set(tokens, offset);
    batch.mask.set(mask, offset);
    batch.behaviourLogprobs.set(behaviourLogprobs, offset);
    batch.advantages.set(advantages, offset);
    offset += tokens.length;
  }
  return batch;
}

export function unpackSamples({ lengths, rest, ...fields }: SampleBatch): TrainingSample[] {
  let offset = 0;
  return rest.map((own, s) => {
    const [start, end] = [offset, offset + (lengths[s] as number)];
    offset = end;
    return {
      ...own,
      tokens: fields.tokens.subarray(start, end),
      mask: fields.mask.subarray(start, end),
      behaviourLogprobs: fields.behaviourLogprobs.subarray(start, end),
      advantages: fields.advantages.subarray(start, end),
    };
  });
}

/** The buffers to be handed over; the batch is of no use to the sender afterwards. */
export function transferables({
  lengths,
  tokens,
  mask,
  behaviourLogprobs,
  advantages,
}: SampleBatch): ArrayBufferLike[] {
  return [lengths, tokens, mask, behaviourLogprobs, advantages].map(({ buffer }) => buffer);
}
