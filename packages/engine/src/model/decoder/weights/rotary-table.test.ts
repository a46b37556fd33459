import { describe, expect, it } from 'vitest';
import { onHost } from '../../../../../../test/support/on-host.js';
import type { DecoderConfig, RopeScaling } from '../../../contract/architecture.js';
import { createReferenceKernels } from '../../../tensor/reference/reference.js';
import { ropeFrequencies, ropeTable } from './rotary-table.js';

const config = (headDim: number, ropeBase: number, ropeScaling?: RopeScaling): DecoderConfig => ({
  vocabSize: 3,
  width: 2 * headDim,
  layers: 1,
  heads: 2,
  kvHeads: 2,
  headDim,
  feedForward: 4,
  context: 7000,
  ropeBase,
  normEpsilon: 1e-6,
  ...(ropeScaling && { ropeScaling }),
});
const llama32: RopeScaling = {
  type: 'llama3',
  factor: 32,
  lowFrequencyFactor: 1,
  highFrequencyFactor: 4,
  originalContext: 8192,
};

describe('rotary embedding', () => {
  // Expected: what transformers 5.23 computes for the same settings, to the last bit.
  it.each<[string, DecoderConfig, number, number[]]>([
    ['plain', config(12, 1e4), 0, [1, 0.2154434472322464, 0.04641588404774666, 0.009999999776482582]],
    ['linear', config(16, 1e4, { type: 'linear', factor: 3 }), 1, [0.10540925711393356, 0.03333333507180214]],
    ['llama3, fast', config(64, 5e5, llama32), 11, [0.010989529080688953, 0.00729266507551074]],
    ['llama3, between', config(64, 5e5, llama32), 14, [0.0032114461064338684, 0.0012905480107292533]],
    ['llama3, slow', config(64, 5e5, llama32), 18, [0.000019461638657958247, 0.00001291476746700937]],
  ])('has the frequencies of transformers: %s', (_, decoder, first, expected) => {
    expect([...ropeFrequencies(decoder)].slice(first, first + expected.length)).toEqual(expected);
  });

  it('turns by float32 angles, also far out', () => {
    const decoder = config(12, 1e4);
    const table = onHost(ropeTable(createReferenceKernels(), decoder));
    const position = 6001;
    const row = table.subarray(position * 12, (position + 1) * 12);
    ropeFrequencies(decoder).forEach((frequency, i) => {
      const angle = Math.fround(frequency * position);
      expect([row[i], row[6 + i]]).toEqual([Math.fround(Math.cos(angle)), Math.fround(Math.sin(angle))]);
    });
  });
});
