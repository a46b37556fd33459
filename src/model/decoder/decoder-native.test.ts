import { describe, it } from 'vitest';
import { adapterContract } from '../../../test/contracts/adapters.js';
import { baseContract } from '../../../test/contracts/bases.js';
import { decoderContract } from '../../../test/contracts/decoder.js';
import { precisionContract } from '../../../test/contracts/precision.js';
import { loadNativeKernels } from '../../tensor/native/load-kernels.js';
import { selectKernels } from '../../tensor/select.js';

const { kernels, notice } = await selectKernels({ threads: 2 });

if (kernels.name === 'native') {
  decoderContract('native', () => kernels);
  adapterContract('native', () => kernels);
  baseContract('native', () => kernels);
  precisionContract('native', () => kernels);
  const tiles = await loadNativeKernels({ threads: 2, narrow: 'amx-emulated' });
  if ('reason' in tiles) throw new Error(tiles.reason);
  precisionContract('native, in emulated tiles,', () => tiles.kernels);
} else
  describe.skip(`decoder on native kernels: ${notice ?? 'not available'}`, () => it('needs a C++ compiler', () => {}));
