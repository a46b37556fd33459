import { describe, it } from 'vitest';
import { adapterContract } from '../../../../../test/contracts/adapters.js';
import { baseContract } from '../../../../../test/contracts/bases.js';
import { convolutions, decoderContract, features, lfm2, plain } from '../../../../../test/contracts/decoder.js';
import { precisionContract } from '../../../../../test/contracts/precision.js';
import { selectKernels } from '../../tensor/select.js';

const { kernels, notice } = await selectKernels({ threads: 1, prefer: 'wasm' });

if (kernels.name === 'wasm') {
  decoderContract('wasm', () => kernels);
  // Native kernels have the other contracts in the daily tests.
  describe('slow', { tags: 'verify' }, () => {
    decoderContract('wasm', () => kernels, { ...features, ...convolutions });
    adapterContract('wasm', () => kernels);
    baseContract('wasm', () => kernels);
    precisionContract('wasm', () => kernels);
    baseContract('wasm', () => kernels, { 'of LFM2': { ...plain, ...lfm2 } });
  });
} else
  describe.skip(`decoder on WebAssembly kernels: ${notice ?? 'not available'}`, () => it('needs the build', () => {}));
