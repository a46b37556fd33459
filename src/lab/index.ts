/**
 * Door of `lab`: methods for which no measurement has shown a gain, one folder each (docs/neighbours.md has the
 * figures). The composition root lists them, so recipes name them like any other.
 */

import type { KnownLoss } from '@drmas/engine/loss';
import { counterfactual } from './counterfactual/counterfactual.js';
import { ktoLoss } from './kto/kto.js';

export const labEstimators = [counterfactual] as const;

/** The losses of the lab, each with its module. */
export const labLosses: readonly KnownLoss[] = [ktoLoss];
