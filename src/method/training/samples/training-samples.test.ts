import type { TrainingSample, Turn } from '@drmas/engine/nouns';
import { expect, it } from 'vitest';
import { scoreTurns, trainingSample } from './training-samples.js';

const turnOf = (prompt: readonly number[], response: readonly number[]): Turn =>
  ({
    agent: 'solver',
    policy: 'solver',
    policyVersion: 2,
    temperature: 0.5,
    prompt,
    response,
    logprobs: response.map((token) => -token / 8),
  }) as unknown as Turn;

const first = turnOf([1, 2], [3, 4]);
const second = turnOf([1, 2, 3, 4, 5], [6]);
const third = turnOf([1, 2, 3, 4, 5, 6], [7, 8]); // it follows the second directly

it('makes one sequence of a chain, with the numbers of each turn', () => {
  const sample = trainingSample(
    [
      { turn: first, advantage: 1, referenceLogprobs: Float32Array.of(-1, -2) },
      { turn: second, advantage: [-2], referenceLogprobs: Float32Array.of(-3) },
      { turn: third, advantage: [0, 0.5], referenceLogprobs: Float32Array.of(-4, -5) },
    ],
    9,
  );
  expect(sample).toEqual({
    tokens: Int32Array.of(1, 2, 3, 4, 5, 6, 7, 8),
    mask: Uint8Array.of(0, 0, 1, 1, 0, 1, 1, 1),
    spans: [
      { start: 2, end: 4 },
      { start: 5, end: 6 },
      { start: 6, end: 8 },
    ],
    behaviourLogprobs: Float32Array.of(0, 0, -3 / 8, -4 / 8, 0, -6 / 8, -7 / 8, -1),
    advantages: Float32Array.of(0, 0, 1, 1, 0, -2, 0, 0.5),
    referenceLogprobs: Float32Array.of(0, 0, -1, -2, 0, -3, -4, -5),
    temperature: 0.5,
    policyVersion: 2,
    agent: 'solver',
    episodeTokens: 9,
  });
  expect(trainingSample([{ turn: first, advantage: 1 }])).not.toHaveProperty('spans');
});

it('scores equal chains once, and gives each turn its own numbers', async () => {
  const sent: (readonly TrainingSample[])[] = [];
  const score = async (samples: readonly TrainingSample[]) => {
    sent.push(samples);
    return samples.map(({ tokens, mask }) => Float32Array.from(tokens, (token, t) => (mask[t] === 1 ? -token : 0)));
  };
  const again = [turnOf([1, 2], [3, 4]), turnOf([1, 2, 3, 4, 5], [6])];
  const whole = turnOf([1, 2, 3, 4, 5], [6]); // the same tokens, of which it wrote the last one only
  const scores = await scoreTurns([[first, second], [third], again, [whole]], score);
  expect(sent.map((samples) => samples.map(({ tokens }) => tokens.length))).toEqual([[6, 8, 6]]);
  const rows = [first, second, third, ...again, whole].map((turn) => [...(scores.get(turn) ?? [])]);
  expect(rows).toEqual([[-3, -4], [-6], [-7, -8], [-3, -4], [-6], [-6]]);
});
