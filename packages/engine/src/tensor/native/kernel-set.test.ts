import { describe, expect, it } from 'vitest';
import { type Abilities, chooseSet, type SetRequest, setName } from './kernel-set.js';

const GRANITE_RAPIDS: Abilities = {
  isas: ['avx512', 'avx2', 'portable'],
  products: ['amx', 'avx512-bf16', 'widened'],
  fastest: 'amx',
};
const EMERALD_WITHOUT_TILES: Abilities = {
  ...GRANITE_RAPIDS,
  products: ['avx512-bf16', 'widened'],
  fastest: 'widened',
};
const ZEN_5: Abilities = { ...EMERALD_WITHOUT_TILES, fastest: 'avx512-bf16' };
const HASWELL: Abilities = { isas: ['avx2', 'portable'], products: ['widened'], fastest: 'widened' };
const ARM: Abilities = { isas: ['portable'], products: ['widened'], fastest: 'widened' };

const chosen = (abilities: Abilities, request: SetRequest) => {
  const choice = chooseSet(abilities, request);
  return 'set' in choice ? setName(choice.set) : choice.reason;
};

describe('the set that a processor takes', () => {
  it.each([
    ['the fastest of an Intel with AMX', GRANITE_RAPIDS, {}, 'avx512+amx'],
    ['no tiles for models in float32', GRANITE_RAPIDS, { bfloat16Products: 'widened' }, 'avx512'],
    ['pairs on an Intel, on demand', GRANITE_RAPIDS, { bfloat16Products: 'avx512-bf16' }, 'avx512+avx512-bf16'],
    ['no pairs by default on an Intel', EMERALD_WITHOUT_TILES, {}, 'avx512'],
    ['the fastest of an AMD', ZEN_5, {}, 'avx512+avx512-bf16'],
    ['the fastest without AVX-512', HASWELL, {}, 'avx2'],
    ['the only one of ARM', ARM, {}, 'portable'],
    ['the one with the same bits everywhere', GRANITE_RAPIDS, { isa: 'avx2' }, 'avx2'],
    ['emulated tiles anywhere', ARM, { bfloat16Products: 'amx-emulated' }, 'portable+amx-emulated'],
    [
      'emulated tiles beside a named one',
      ZEN_5,
      { isa: 'avx2', bfloat16Products: 'amx-emulated' },
      'avx2+amx-emulated',
    ],
    ['not AVX-512 without it', HASWELL, { isa: 'avx512' }, 'this processor cannot run avx512'],
    [
      'no tiles beside AVX2',
      GRANITE_RAPIDS,
      { isa: 'avx2', bfloat16Products: 'amx' },
      'this processor cannot run avx2 with amx',
    ],
    ['no tiles without them', ZEN_5, { bfloat16Products: 'amx' }, 'this processor cannot run amx'],
  ] as const)('%s', (_, abilities, request, expected) => {
    expect(chosen(abilities, request)).toBe(expected);
  });
});
