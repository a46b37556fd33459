import fc from 'fast-check';
import { expect, it } from 'vitest';
import { fitSampling, playAlone } from './fit-sampling.js';

const episodesOf = (count: number, tokens: number, wait: number) =>
  Array.from({ length: count }, (_, i) => ({
    calls: [
      { wait: 0, promptTokens: 30 + (i % 7), responseTokens: tokens + (i % 5) },
      { after: 0, wait, promptTokens: 50 + (i % 3), responseTokens: 4 + (i % 2) },
    ],
    rest: 0,
  }));

it('finds the speed of a sampler from timed plays, and so predicts other plays', () => {
  const positive = (max: number) => fc.double({ min: max / 20, max, noNaN: true });
  fc.assert(
    fc.property(
      positive(0.01),
      positive(0.002),
      positive(0.0005),
      fc.double({ min: 0, max: 0.3, noNaN: true }),
      (a, b, p, wait) => {
        const truth = { iterationSeconds: a, sequenceSeconds: b, promptTokenSeconds: p };
        const sizes = [
          { episodes: episodesOf(8, 20, wait), atOnce: 1 },
          { episodes: episodesOf(8, 20, wait), atOnce: 8 },
          { episodes: episodesOf(64, 20, wait), atOnce: 64 },
          { episodes: episodesOf(64, 20, wait), atOnce: 16 },
        ];
        const plays = sizes.map((size) => ({ ...size, seconds: playAlone(size, truth).seconds }));
        const fitted = fitSampling(plays);
        for (const size of [...sizes, { episodes: episodesOf(300, 20, wait), atOnce: 128 }]) {
          const ratio = playAlone(size, fitted).seconds / playAlone(size, truth).seconds;
          expect(Math.abs(Math.log(ratio))).toBeLessThan(Math.log(1.1));
        }
      },
    ),
    { numRuns: 30 },
  );
});
