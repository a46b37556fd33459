/** Ranges that settings of several optimisers share. */
import { z } from 'zod';

export const nonNegative = z.number().min(0);
export const positive = z.number().gt(0);
/** The decay of a running mean: the share of the old value that is kept. */
export const decay = z.number().min(0).lt(1);
