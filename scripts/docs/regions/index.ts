import type { Region } from '../pages.js';
import { commandPages, commandTable } from './commands.js';
import { estimators } from './estimators.js';
import { kernels } from './kernels.js';
import { losses } from './losses.js';
import { ownTeam } from './own-team.js';
import { recipes } from './recipes.js';

/** Every generated part of a hand-written page. */
export const regions: readonly Region[] = [commandPages, commandTable, estimators, kernels, losses, ownTeam, recipes];
