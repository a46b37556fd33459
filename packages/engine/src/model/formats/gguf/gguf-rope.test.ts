import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import type { DecoderConfig } from '../../../contract/architecture.js';
import { llama3Scaling, ropeFactors } from './gguf-rope.js';

const config: DecoderConfig = {
  vocabSize: 6,
  width: 64,
  layers: 1,
  heads: 1,
  kvHeads: 1,
  headDim: 64,
  feedForward: 12,
  context: 16,
  ropeBase: 500_000,
  normEpsilon: 1e-6,
};
const scaling = (factor: number, low: number, high: number, originalContext: number) =>
  ({ type: 'llama3', factor, lowFrequencyFactor: low, highFrequencyFactor: high, originalContext }) as const;

describe("the factors of Llama 3's positions", () => {
  it.each([8, 32])('give the published settings back: factor %i', (factor) => {
    const ropeScaling = scaling(factor, 1, 4, 8192);
    expect(llama3Scaling(ropeFactors({ ...config, ropeScaling }), config, 'f')).toEqual(ropeScaling);
  });

  it('give settings back that turn positions alike, whatever the settings were', () => {
    const anyScaling = fc
      .tuple(fc.integer({ min: 2, max: 64 }), fc.integer({ min: 2, max: 10 }), fc.integer({ min: 64, max: 65_536 }))
      .map(([factor, high, original]) => scaling(factor, 1, high, original));
    fc.assert(
      fc.property(anyScaling, fc.constantFrom(8, 32, 64, 128), (ropeScaling, headDim) => {
        const sized = { ...config, headDim };
        const factors = ropeFactors({ ...sized, ropeScaling });
        const scaling = llama3Scaling(factors, sized, 'f');
        const again = scaling === undefined ? factors.map(() => 1) : ropeFactors({ ...sized, ropeScaling: scaling });
        for (const [i, factor] of factors.entries())
          expect(Math.abs((again[i] as number) / factor - 1)).toBeLessThan(1e-5);
      }),
    );
  });

  it('are refused when another rule gives them, or their number is wrong', () => {
    const rising = Float32Array.from({ length: 32 }, (_, i) => 1 + i);
    expect(() => llama3Scaling(rising, config, 'f')).toThrow("by another rule than Llama 3's");
    expect(() => llama3Scaling(rising.slice(1), config, 'f')).toThrow('has 31 numbers, expected 32');
  });

  it('of 1 stretch nothing', () => {
    expect(llama3Scaling(new Float32Array(32).fill(1), config, 'f')).toBeUndefined();
  });
});
