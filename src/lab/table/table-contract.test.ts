import { backendContract } from '../../../test/contracts/backend/index.js';
import { temporaryRoot } from '../../../test/support/tiny-run.js';
import { nodeFiles } from '../../base/platform/node-files.js';
import type { WeightsSpec } from '../../engine/contract/weights-spec.js';
import type { ChoiceTableSpec } from '../../engine/model.js';
import { TableBackend } from './table-backend.js';

const bytes = Array.from({ length: 256 }, (_, i) => `choice ${i}`);
const table = (choices: readonly string[], length: number): WeightsSpec => {
  const model: ChoiceTableSpec = {
    ...{ type: 'choice-table', choices, features: ['task 0', 'task 1', 'task 2'], length },
  };
  return { type: 'of-kind', model };
};

backendContract('a table of choices', {
  open: async () => new TableBackend(nodeFiles),
  weights: () => table(bytes, 63),
  misfit: table(['a', 'b'], 2),
  learns: 0.1,
  sameForEverySeed: true,
  mayStillAnswer: true,
  root: temporaryRoot(),
});
