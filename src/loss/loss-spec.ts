/** A policy loss as recipes and programs name it, and the declaration behind the name. */
import { z } from 'zod';
import { ArgumentError } from '../core/errors.js';
import type { LossDeclaration, LossKind } from './define-loss.js';
import type { Aggregation, ImportanceCorrection } from './loss-settings.js';
import { losses } from './losses/index.js';

type Declared = (typeof losses)[number];

/** A policy loss, named and with its numbers; `policyLoss` computes it. */
export type LossSpec = Readonly<z.output<Declared['schema']>>;

type LossType = LossSpec['type'];

/** A recipe's `loss`: the settings of every loss, told apart by `type`. */
export const lossSchema = z.discriminatedUnion('type', losses.map(({ schema }) => schema) as [Declared['schema']]);

/** The names of all losses. */
export const lossTypes: readonly LossType[] = losses.map(({ type }) => type);

/** The loss of that name. @throws ArgumentError for an unknown one */
export function lossDeclaration(type: LossType): LossDeclaration {
  const declaration: LossDeclaration | undefined = losses.find((one) => one.type === type);
  if (declaration !== undefined) return declaration;
  throw new ArgumentError(`unknown loss ${JSON.stringify(type)}; there are ${lossTypes.join(', ')}`);
}

/** The loss with these settings. @throws ArgumentError for an unknown type or a number out of range */
export function lossKind(spec: LossSpec): LossKind {
  const { ratio, gradientOf, dampensClipping, fromKl, selects, ...declaration } = lossDeclaration(spec.type);
  return {
    ratio,
    gradientOf,
    ...(dampensClipping === undefined ? {} : { dampensClipping }),
    ...(fromKl === undefined ? {} : { fromKl }),
    ...(selects === undefined ? {} : { selects }),
    aggregate: declaration.aggregate ?? aggregationOf(spec),
    token: declaration.token(spec),
    protocolLoss: declaration.protocolLoss?.(spec),
  };
}

function aggregationOf(spec: LossSpec): Aggregation {
  if ('aggregate' in spec) return spec.aggregate;
  throw new ArgumentError(`loss.aggregate is missing; '${spec.type}' has no aggregation of its own`);
}

/** The importance correction of a loss; undefined where it has none. */
export function correctionOf(spec: LossSpec): ImportanceCorrection | undefined {
  return 'importanceCorrection' in spec ? spec.importanceCorrection : undefined;
}
