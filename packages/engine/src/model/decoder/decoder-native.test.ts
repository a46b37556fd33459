import { describe, expect, inject, it } from 'vitest';
import { adapterContract, adaptersOfFamilies } from '../../../../../test/contracts/adapters.js';
import { baseContract } from '../../../../../test/contracts/bases.js';
import {
  convolutions,
  decoderContract,
  extremes,
  features,
  lfm2,
  plain,
  randomSequence,
  shake,
} from '../../../../../test/contracts/decoder.js';
import { precisionContract } from '../../../../../test/contracts/precision.js';
import { plainAdamW } from '../../../../../test/support/adamw.js';
import { expectSameBits } from '../../../../../test/support/expectations.js';
import { onHost } from '../../../../../test/support/on-host.js';
import { RandomStream } from '../../base/core/random.js';
import type { Kernels } from '../../tensor/kernels.js';
import { loadNativeKernels } from '../../tensor/native/load-kernels.js';
import { selectKernels } from '../../tensor/select.js';
import { PolicyModel } from './policy-model.js';

const { kernels, notice } = await selectKernels({ threads: 2 });

if (kernels.name === 'native') {
  decoderContract('native', () => kernels, { ...extremes, ...features });
  adapterContract('native', () => kernels);
  baseContract('native', () => kernels);
  precisionContract('native', () => kernels, ['rich']);
  describe('slow', { tags: 'verify' }, () => {
    adapterContract('native', () => kernels, adaptersOfFamilies);
    precisionContract('native', () => kernels, ['plain']);
    decoderContract('native', () => kernels, convolutions);
    baseContract('native', () => kernels, { 'of LFM2': { ...plain, ...lfm2 } });
  });
  if (inject('slowTests')) await inTiles();
} else
  describe.skip(`decoder on native kernels: ${notice ?? 'not available'}`, () => it('needs a C++ compiler', () => {}));

/** Products in tiles of AMX, and in emulated ones. Only slow tests compare these, so the daily tests compile none. */
async function inTiles(): Promise<void> {
  const tiles = await loadNativeKernels({ threads: 2, bfloat16Products: 'amx-emulated' });
  if ('reason' in tiles) throw new Error(tiles.reason);
  describe('slow', { tags: 'verify' }, () => precisionContract('native, in emulated tiles,', () => tiles.kernels));

  // The sanitizers look at the same products in smaller batches above, and would take minutes here.
  const sanitized = process.env.ASAN_OPTIONS !== undefined;
  it.skipIf(sanitized)(
    'trains to the same bits in tiles, emulated or not, on one thread and on several',
    { tags: 'verify' },
    async () => {
      const expected = await trained(tiles.kernels);
      for (const [bfloat16Products, threads] of [
        ['amx-emulated', 1],
        ['amx', 1],
        ['amx', 2],
        ['amx', 3],
      ] as const) {
        const loaded = await loadNativeKernels({ threads, bfloat16Products });
        if ('reason' in loaded) {
          expect(bfloat16Products).toBe('amx');
          continue;
        }
        expectSameBits(await trained(loaded.kernels), expected);
        loaded.kernels.dispose();
      }
    },
  );
}

/** The weights after a few steps on batches so large that threads share every product. */
async function trained(kernels: Kernels): Promise<Float32Array> {
  const config = { ...plain, vocabSize: 64, width: 96, headDim: 24, feedForward: 256, context: 64 };
  const model = new PolicyModel(kernels, config, { precision: 'bfloat16' });
  model.initialise(5);
  shake(model.tensors, new RandomStream('tiles'));
  model.weightsChanged();
  const random = new RandomStream('batches for tiles');
  for (let step = 0; step < 4; step++) {
    const sequences = Array.from({ length: 12 }, (_, i) => randomSequence(random, 64 - i, 1));
    await model.accumulate(sequences, (indices) =>
      indices.map((i) => Float32Array.from(sequences[i]?.mask ?? [], (written) => -written)),
    );
    await model.optimStep({ optimizer: plainAdamW(1e-2), clipNorm: 1 });
  }
  return onHost(model.trained).slice();
}
