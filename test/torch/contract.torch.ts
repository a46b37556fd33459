/**
 * The contract of backends on PyTorch: bit for bit on the processor, within rounding on the device of
 * `DRMAS_TEST_TORCH_DEVICE`.
 */
import type { TorchDevice } from '../../src/base/host.js';
import { nodeFiles } from '../../src/base/platform.js';
import type { WeightsSpec } from '../../src/engine/contract/weights-spec.js';
import { bytesTokenizer } from '../../src/engine/model/tokenizers/bytes.js';
import { startTorch } from '../../src/engine/torch/start-torch.js';
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
    headDim: onProcessor ? 4 : 16, // FlexAttention on a card needs 16
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
