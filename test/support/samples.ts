import type { TrainingSample } from '@drmas/engine/nouns';

/** A sample with one prompt token and this response; behaviour log-probs are a function of the tokens. */
export function sampleOf(
  response: readonly number[],
  advantages: readonly number[],
  changes: Partial<TrainingSample> = {},
): TrainingSample {
  const tokens = Int32Array.from([7, ...response]);
  return {
    tokens,
    mask: Uint8Array.from(tokens, (_, t) => (t === 0 ? 0 : 1)),
    behaviourLogprobs: Float32Array.from(tokens, (token, t) => -0.4 * token - 0.1 * t),
    advantages: Float32Array.from([0, ...advantages]),
    temperature: 1,
    policyVersion: 0,
    agent: 'solver',
    ...changes,
  };
}
