/** Specs of every declared loss, so that a new one is held to the laws by its row alone. */

import type { Aggregation } from '@drmas/engine/internal/loss/loss-settings';
import { type AnyLoss, type LossDeclaration, lossKind, lossNamed } from '@drmas/engine/loss';
import { labLosses } from '../../src/lab/index.js';
import { standard } from '../../src/runs/composition/standard.js';

const aggregations: readonly Aggregation[] = [
  'token-mean',
  'seq-mean-token-sum',
  'seq-mean-token-mean',
  'seq-mean-token-sum-norm',
  'chain-mean',
  'episode-mean',
];

/** Bounds that random ratios near 1 lie on both sides of. */
const bounds = { clip: 0.15, clipLow: 0.1, clipHigh: 0.2, dualClip: 1.4 };
const truncated = { importanceCorrection: { cap: 1.05, beyond: 'truncate', level: 'token' } };
const corrections = [
  truncated,
  { importanceCorrection: { cap: 1.2, beyond: 'mask', level: 'token' } },
  { importanceCorrection: { cap: 1.1, beyond: 'mask', level: 'sequence' } },
];

/** The loss with the settings that it has among these, the others at their defaults. */
function specOf({ type, schema }: LossDeclaration, settings: Readonly<Record<string, unknown>>): AnyLoss {
  const present = Object.entries(settings).filter(([name]) => name in schema.shape);
  return lossNamed(schema.parse({ type, ...Object.fromEntries(present) }) as { readonly type: string }, labLosses);
}

const has = ({ schema }: LossDeclaration, setting: string) => setting in schema.shape;

/** Every loss with its defaults, with each aggregation and with each way of correcting importance. */
export const everySpec: readonly AnyLoss[] = standard.losses.flatMap((loss: LossDeclaration) => [
  specOf(loss, {}),
  ...(has(loss, 'aggregate') ? aggregations : aggregations.slice(0, 1)).map((aggregate) =>
    specOf(loss, { ...bounds, aggregate }),
  ),
  ...(has(loss, 'importanceCorrection') ? corrections : []).map((correction) =>
    specOf(loss, { ...bounds, ...correction }),
  ),
]);

/** Every loss once, and once with corrected importance if it allows that; the aggregations in turn. */
export const someSpecs: readonly AnyLoss[] = standard.losses.flatMap((loss: LossDeclaration, i) => {
  const settings = { ...bounds, aggregate: aggregations[i % aggregations.length] };
  const plain = specOf(loss, settings);
  return has(loss, 'importanceCorrection') ? [plain, specOf(loss, { ...settings, ...truncated })] : [plain];
});

/**
 * Whether the losses of parts of a mini-batch add up to the loss of the whole: not if it has constants of the batch.
 */
export const addsUp = (spec: AnyLoss): boolean => !lossKind(spec).prepares;

/** A loss and its settings in a line: the declaration of a user's loss would fill pages. */
export const nameOfLoss = (spec: AnyLoss): string =>
  JSON.stringify(spec, (key, value) => (key === 'declaration' ? undefined : value));

/** The type of a loss, of one that a user declares too. */
export const typeOfLoss = (spec: AnyLoss): string => (spec.type === 'own' ? spec.settings.type : spec.type);
