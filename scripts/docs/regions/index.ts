import type { Region } from '../pages.js';
import { recipes } from './recipes.js';

/** Every generated part of a hand-written page. */
export const regions: readonly Region[] = [recipes];
