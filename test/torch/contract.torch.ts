/**
 * The contract of backends on PyTorch: bit for bit on the processor, within rounding on the device of
 * `DRMAS_TEST_TORCH_DEVICE`.
 */

import type { WeightsSpec } from '@drmas/engine/contract';
import type { TorchDevice } from '@drmas/engine/host';
import { startTorch } from '@drmas/engine/internal/torch/start-torch';
import { nodeFiles } from '@drmas/engine/platform';
import { bytesTokenizer } from '@drmas/engine/tokens';
import { backendContract } from '../contracts/backend/index.js';
import { temporaryRoot } from '../support/tiny-run.js';
import { torchPython } from './torch-python.js';

const available = await torchPython();
const device = (process.env.DRMAS_TEST_TORCH_DEVICE ?? 'torch-cpu') as TorchDevice;
const onProcessor = device === 'torch-cpu';

const tokenizer = bytesTokenizer();
const random = (seed: number, feedForward: number, context = 32): WeightsSpec => ({
  type: 'random',
  config: {
    vocabSize: tokenizer.vocabSize,
    width: onProcessor ? 8 : 32,
    layers: 2,
    heads: 2,
    kvHeads: 1,
    headDim: onProcessor ? 4 : 16, // a size that FlexAttention takes as it is
    feedForward,
    context,
    ropeBase: 10_000,
    normEpsilon: 1e-6,
  },
  tokenizer,
  seed,
  precision: 'float32',
});

if (available)
  backendContract('the engine on PyTorch', {
    open: () => startTorch({ files: nodeFiles, device }),
    weights: (seed = 1) => random(seed, 12),
    misfit: random(1, 16),
    learns: 1,
    ...(!onProcessor && { digits: 3 }),
    root: temporaryRoot(),
  });
