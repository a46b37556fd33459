/** The targets of the fuzzer. A new reader of outside data is one more row. */
import type { Target } from '../target.js';
import { modelFiles } from './model-files.js';
import { recipes } from './recipes.js';
import { requests } from './requests.js';
import { runs } from './runs.js';
import { stored } from './stored.js';
import { tasks } from './tasks.js';
import { wire } from './wire.js';

export const targets: readonly Target[] = [
  ...modelFiles,
  ...tasks,
  ...recipes,
  ...runs,
  ...stored,
  ...wire,
  ...requests,
];
