/** The composition root: the only place that knows everything that recipes can name. */

import type { BackendDeclaration } from '@drmas/engine/backends';
import { SAMPLER_KEY, samplerSchema } from '@drmas/engine/endpoints';
import { losses } from '@drmas/engine/loss';
import { embedded } from '@drmas/engine/node';
import { server } from '@drmas/tinker';
import { table } from '../../lab/backend.js';
import { labEstimators, labLosses } from '../../lab/index.js';
import { estimators } from '../../method/advantage.js';
import type { Lists } from '../../method/recipe.js';
import { trackers } from '../trackers/index.js';

const backends: readonly BackendDeclaration[] = [embedded, server, table];

/** The lists that the package ships. A recipe adds plug-ins to them with `use`. */
export const standard: Lists = {
  estimators: [...estimators, ...labEstimators],
  losses: [...losses, ...labLosses.map(({ declaration }) => declaration)],
  backends,
  sampler: { schema: samplerSchema, keyVariable: SAMPLER_KEY },
  trackers,
  ownLosses: labLosses,
  ownTrackers: [],
};
