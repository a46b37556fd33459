import { backendContract } from '../../../test/contracts/backend/index.js';
import { temporaryRoot } from '../../../test/support/tiny-run.js';
import { nodeFiles } from '../../base/platform/node-files.js';
import type { WeightsSpec } from '../../engine/contract/weights-spec.js';
import { TableBackend } from './table-backend.js';

const table = (choices: number): WeightsSpec => ({
  type: 'table',
  shape: {
    choices: Array.from({ length: choices }, (_, i) => `choice ${i}`),
    features: ['task 0', 'task 1', 'task 2'],
    length: 63,
  },
});

backendContract('a table of choices', {
  open: async () => new TableBackend(nodeFiles),
  weights: () => table(256),
  misfit: { type: 'table', shape: { choices: ['a', 'b'], features: ['task 0', 'task 1', 'task 2'], length: 2 } },
  learns: 0.1,
  sameForEverySeed: true,
  mayStillAnswer: true,
  root: temporaryRoot(),
});
