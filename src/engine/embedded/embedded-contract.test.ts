import { backendContract } from '../../../test/contracts/backend/index.js';
import { temporaryRoot } from '../../../test/support/tiny-run.js';
import { nodeFiles } from '../../base/platform/node-files.js';
import type { WeightsSpec } from '../contract/weights-spec.js';
import { bytesTokenizer } from '../model/tokenizers/bytes.js';
import { startEmbedded } from './start-embedded.js';

const tokenizer = bytesTokenizer();
const random = (seed: number, feedForward: number): WeightsSpec => ({
  type: 'random',
  config: {
    ...{ vocabSize: tokenizer.vocabSize, width: 8, layers: 2, heads: 2, kvHeads: 1, headDim: 4, feedForward },
    ...{ context: 32, ropeBase: 10_000, normEpsilon: 1e-6 },
  },
  tokenizer,
  seed,
});

backendContract('the embedded engine', {
  open: () => startEmbedded({ threads: 2, files: nodeFiles }),
  weights: (seed = 1) => random(seed, 12),
  misfit: random(1, 16),
  learns: 1,
  root: temporaryRoot(),
});
