/** The contract of backends, bit for bit, on PyTorch for the processor. */
import { nodeFiles } from '../../src/base/platform.js';
import type { WeightsSpec } from '../../src/engine/contract/weights-spec.js';
import { bytesTokenizer } from '../../src/engine/model/tokenizers/bytes.js';
import { startTorch } from '../../src/engine/torch/start-torch.js';
import { backendContract } from '../contracts/backend/index.js';
import { temporaryRoot } from '../support/tiny-run.js';
import { torchPython } from './torch-python.js';

const available = await torchPython();

const tokenizer = bytesTokenizer();
const random = (seed: number, feedForward: number, context = 32): WeightsSpec => ({
  type: 'random',
  config: {
    vocabSize: tokenizer.vocabSize,
    width: 8,
    layers: 2,
    heads: 2,
    kvHeads: 1,
    headDim: 4,
    feedForward,
    context,
    ropeBase: 10_000,
    normEpsilon: 1e-6,
  },
  tokenizer,
  seed,
});

if (available)
  backendContract('the engine on PyTorch', {
    open: () => startTorch({ files: nodeFiles, device: 'torch-cpu' }),
    weights: (seed = 1) => random(seed, 12),
    misfit: random(1, 16),
    learns: 1,
    root: temporaryRoot(),
  });
