/** A policy loss as recipes and programs name it, and the declaration behind the name. */
import { z } from 'zod';
import { ArgumentError, faultsText } from '../errors.js';
import type { BegunLoss, LossBatch, LossDeclaration, LossKind } from './define-loss.js';
import type { Aggregation, ImportanceCorrection } from './loss-settings.js';
import { losses } from './losses/index.js';

type DeclaredLoss = (typeof losses)[number];

/** A loss of drmas, named and with its numbers; `policyLoss` computes it. */
export type LossSpec = Readonly<z.output<DeclaredLoss['schema']>>;

type LossType = LossSpec['type'];

/** A loss that a user declared. */
export interface KnownLoss {
  readonly declaration: LossDeclaration;
  /** The absolute file URL of the module that exports it, for backends that compute in another thread. */
  readonly module?: string | undefined;
}

/** A loss of a user with its settings; `lossNamed` makes it. */
export interface OwnLoss {
  readonly type: 'own';
  /** Its settings, as its schema reads them; their `type` is the name of the loss. */
  readonly settings: LossSettings;
  readonly module?: string | undefined;
  /** Absent on the way to another thread, which imports it from the module. */
  readonly declaration?: LossDeclaration | undefined;
}

/** A loss of drmas, or one of a user. */
export type AnyLoss = LossSpec | OwnLoss;

type LossSettings = Readonly<{ type: string }> & Partial<Readonly<Record<string, unknown>>>;

/** A recipe's `loss`: the settings of every loss, told apart by `type`. */
export const lossSchema = z.discriminatedUnion('type', losses.map(({ schema }) => schema) as [DeclaredLoss['schema']]);

/** The names of all losses of drmas. */
export const lossTypes: readonly LossType[] = losses.map(({ type }) => type);

/** The loss of that name. @throws ArgumentError for an unknown one */
function lossDeclaration(type: string, extra: readonly KnownLoss[] = []): LossDeclaration {
  const declarations: readonly LossDeclaration[] = [...losses, ...extra.map(({ declaration }) => declaration)];
  const declaration = declarations.find((one) => one.type === type);
  if (declaration !== undefined) return declaration;
  const known = declarations.map((one) => one.type).join(', ');
  throw new ArgumentError(`unknown loss ${JSON.stringify(type)}; there are ${known}`);
}

/**
 * The loss that settings name, as `policyLoss` and backends take it.
 * @param extra The losses of users, in addition to the losses of drmas
 * @throws ArgumentError for an unknown type, or settings that do not fit the schema of a user's loss
 *
 * @example
 * ```ts
 * import { policyLoss } from 'drmas';
 * import { lossNamed } from 'drmas/losses';
 *
 * const rows = { logprobs: [[-0.9]], behaviourLogprobs: [[-1]], advantages: [[1]], mask: [[1]] };
 * const loss = lossNamed({ type: 'gspo', clipLow: 3e-4, clipHigh: 4e-4 }, []); // the list has losses of `defineLoss`
 * const { gradient } = policyLoss(rows, loss);
 * ```
 */
export function lossNamed(
  settings: LossSpec | { readonly type: string; readonly [setting: string]: unknown },
  extra: readonly KnownLoss[],
): AnyLoss {
  const { type } = settings;
  const known = extra.find(({ declaration }) => declaration.type === type);
  if (known === undefined) {
    lossDeclaration(type, extra);
    return settings as LossSpec;
  }
  const read = known.declaration.schema.safeParse(settings);
  if (!read.success) throw new ArgumentError(`the loss '${type}': ${faultsText(known.declaration.schema, settings)}`);
  return { type: 'own', settings: { ...read.data, type }, declaration: known.declaration, module: known.module };
}

function opened(loss: AnyLoss): { readonly declaration: LossDeclaration; readonly settings: LossSettings } {
  if (loss.type !== 'own') return { declaration: lossDeclaration(loss.type), settings: loss };
  const { declaration, settings } = loss;
  if (declaration === undefined)
    throw new ArgumentError(`the module of the loss '${settings.type}' has not been imported`);
  return { declaration, settings };
}

const EMPTY: LossBatch = { forEachRatio: () => {}, forEachToken: () => {}, weight: 0 };

/** The loss with these settings. @throws ArgumentError for an unknown type or a number out of range */
export function lossKind(loss: AnyLoss): LossKind {
  const { declaration, settings } = opened(loss);
  const { ratio, gradientOf, withoutAdvantage = 'counted', weighsDemonstrations, metrics = {} } = declaration;
  const begin = (batch: LossBatch, given?: unknown): BegunLoss => {
    const context = given ?? declaration.prepare?.(batch, settings);
    return {
      token: declaration.token(settings, context),
      divisor: declaration.divisor?.(context) ?? 1,
      metrics: Object.fromEntries(Object.entries(metrics).map(([name, metric]) => [name, metric(context)])),
    };
  };
  return {
    ratio,
    gradientOf,
    withoutAdvantage,
    begin,
    ...(weighsDemonstrations === undefined ? {} : { weighsDemonstrations }),
    aggregate: declaration.aggregate ?? aggregationOf(settings),
    token: begin(EMPTY).token,
    prepares: declaration.prepare !== undefined,
    protocolLoss: declaration.protocolLoss?.(settings),
  };
}

function aggregationOf({ type, aggregate }: LossSettings): Aggregation {
  if (aggregate !== undefined) return aggregate as Aggregation;
  throw new ArgumentError(`loss.aggregate is missing; '${type}' has no aggregation of its own`);
}

/** The importance correction of a loss; undefined if it has none. */
export function correctionOf(loss: AnyLoss): ImportanceCorrection | undefined {
  const settings: LossSettings = loss.type === 'own' ? loss.settings : loss;
  return settings.importanceCorrection as ImportanceCorrection | undefined;
}
