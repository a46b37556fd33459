/** The composition root: the only place that knows everything that recipes can name. */

import { SAMPLER_KEY, samplerSchema } from '../../engine/backends.js';
import { losses } from '../../engine/loss.js';
import { table } from '../../lab/backend.js';
import { labEstimators, labLosses } from '../../lab/index.js';
import { estimators } from '../../method/advantage.js';
import type { Lists } from '../../method/recipe.js';
import { backends } from '../../method/recipe-files.js';
import { trackers } from '../trackers/index.js';

/** The lists that the package ships. A recipe adds plug-ins to them with `use`. */
export const standard: Lists = {
  estimators: [...estimators, ...labEstimators],
  losses: [...losses, ...labLosses.map(({ declaration }) => declaration)],
  backends: [...backends, table],
  sampler: { schema: samplerSchema, keyVariable: SAMPLER_KEY },
  trackers,
  ownLosses: labLosses,
  ownTrackers: [],
};
