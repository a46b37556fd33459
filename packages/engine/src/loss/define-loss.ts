/** The declaration of a loss: recipes, objectives, backends, laws and documents read all that they know from it. */
import { z } from 'zod';
import { ArgumentError, type OptionNames, requireKnown } from '../errors.js';
import { STANDARD_METRICS } from './loss-metrics.js';
import { type Aggregation, aggregations } from './loss-settings.js';

/** A token with an advantage that is not 0. Losses read it during the call only: the object is used again. */
export interface LossToken {
  /** The importance ratio: of the token, or the one that it shares with others (`LossFacts.ratio`). */
  ratio: number;
  /** Its log. */
  logRatio: number;
  /** Times the weight of the importance correction, if the loss has one. */
  advantage: number;
  /** The log-prob under the current policy. */
  logprob: number;
}

/** The contribution of one token. A loss writes `loss` and `gradient`; both flags are false before the call. */
export interface TokenOutcome {
  loss: number;
  /** The derivative of the loss with respect to the variable of `LossFacts.gradientOf`, before aggregation. */
  gradient: number;
  /** Whether the clipped side of the objective counted. */
  clipped: boolean;
  /** Whether the bound of the dual clip counted. */
  clippedLower: boolean;
}

/**
 * Writes the outcome of one token. It must be positively homogeneous in the advantage: c times the advantage gives c
 * times the loss and the gradient for c > 0. The exact merging of identical rows (objective/merged-samples.ts) and the
 * importance correction (a weight on the advantage) need this. Tokens with advantage 0 add nothing; the loss does not
 * see them.
 */
export type TokenLoss = (token: Readonly<LossToken>, out: TokenOutcome) => void;

/** A batch as `prepare` of a loss reads it, before the first gradient. */
export interface LossBatch {
  /**
   * Calls `use` for every importance ratio of the rows that go through the model: one a token, a turn or a row, as the
   * loss shares them. For a row of merged identical samples, `copies` is their number.
   */
  forEachRatio(use: (logRatio: number, copies: number) => void): void;
  /**
   * Calls `use` for every token with an advantage. A row that stands for identical samples has the sum of their
   * positive advantages and, in a second call, the sum of the negative ones.
   * @param use `weight` is the weight of the token in the aggregation, before the normalizer. `token` is lent
   */
  forEachToken(use: (token: Readonly<LossToken>, weight: number) => void): void;
  /** The sum of the weights of all written tokens, also in rows without advantage that do not go through the model. */
  readonly weight: number;
}

/** The properties by which others treat a loss, instead of knowing its name. */
export interface LossFacts {
  /**
   * The tokens that share an importance ratio: none (`token`), the tokens of a turn, which is a run of the mask, or all
   * of the sequence. The shared ratio is the geometric mean of the tokens' ratios, or their product (`product`), which
   * is the ratio of the sequence's probabilities.
   */
  readonly ratio: 'token' | 'turn' | 'sequence' | 'product';
  /**
   * The variable of the gradient: the log of the ratio, or the log-prob of the token with the ratio held constant. The
   * second needs `ratio: 'token'`.
   */
  readonly gradientOf: 'ratio' | 'logprob';
  /**
   * The treatment of rows in which no token has an advantage. `counted`, the default: the normalizer counts them, and
   * they do not go through the model. `scored`: they also go through the model, so that `prepare` sees their ratios.
   * `excluded`: they are not part of the mini-batch; neither the normalizer nor other terms of the loss see them.
   */
  readonly withoutAdvantage?: 'counted' | 'scored' | 'excluded';
  /**
   * Advantages are weights of demonstrations, 0 or above. A recipe whose estimator gives negative advantages is
   * refused.
   */
  readonly weighsDemonstrations?: true;
}

/** A loss that servers of the training protocol know by name, with the bounds of its ratio. */
export interface ProtocolLoss {
  readonly name: 'ppo' | 'cispo';
  readonly low: number;
  readonly high: number;
}

/** A loss whose constants are known. */
export interface BegunLoss {
  readonly token: TokenLoss;
  /** Divides the loss of the whole batch. */
  readonly divisor: number;
  readonly metrics: Readonly<Record<string, number>>;
}

export interface LossKind extends LossFacts {
  readonly aggregate: Aggregation;
  /** The loss of a token in a batch without rows. */
  readonly token: TokenLoss;
  /** Whether `begin` reads the batch. The log-probs of all rows must then be known before the first gradient. */
  readonly prepares: boolean;
  /**
   * Begins a batch.
   * @param context The result of `prepare` for a larger batch that contains this one. Default: `prepare(batch)`
   */
  begin(batch: LossBatch, context?: unknown): BegunLoss;
  /** The loss of the protocol that equals this one, importance correction aside. */
  readonly protocolLoss?: ProtocolLoss | undefined;
}

/** The schema of a recipe's `loss` of one type. */
export type LossSchema<Type extends string, Shape extends z.ZodRawShape> = z.ZodObject<
  { type: z.ZodLiteral<Type> } & Shape,
  z.core.$strict
>;

type SettingsOf<Type extends string, Shape extends z.ZodRawShape> = Readonly<z.output<LossSchema<Type, Shape>>>;

/** A number that events record, from the context. Declared as a method so that lists can hold losses of any context. */
type Metric<Context> = { of(context: Context): number }['of'];

interface LossDefinition<Type extends string, Shape extends z.ZodRawShape, Context> extends LossFacts {
  readonly type: Type;
  /** The paper, and the equations in it. */
  readonly source: string;
  /** The loss of a token, in the symbols of docs/losses.md. */
  readonly formula: string;
  /** The situation to use it in. */
  readonly use: string;
  /** Its settings without `type`, with their ranges and defaults. */
  readonly schema: Shape;
  /** The aggregation of a loss that has only one; others have the setting `aggregate`. */
  readonly aggregate?: Aggregation;
  /**
   * Computes constants from all rows of a batch, before the first gradient. This costs a forward pass. It also accepts
   * a batch without rows.
   */
  prepare?(batch: LossBatch, settings: SettingsOf<Type, Shape>): Context;
  /**
   * The loss of a token with these settings.
   * @param context The result of `prepare`
   * @throws ArgumentError for a number out of range: no schema checks the numbers that a program passes
   */
  token(settings: SettingsOf<Type, Shape>, context: Context): TokenLoss;
  /** Divides the loss of the whole batch; by default 1. */
  divisor?(context: Context): number;
  /**
   * The metrics of this loss beside the standard ones (loss-metrics.ts). Results and step events have them under these
   * names.
   */
  readonly metrics?: Readonly<Record<string, Metric<Context>>>;
  /** The loss of the protocol that equals this one with these settings. */
  protocolLoss?(settings: SettingsOf<Type, Shape>): ProtocolLoss | undefined;
}

/** A declared loss. */
export interface LossDeclaration<
  Type extends string = string,
  Shape extends z.ZodRawShape = z.ZodRawShape,
  Context = unknown,
> extends Omit<LossDefinition<Type, Shape, Context>, 'schema'> {
  /** Tells plug-ins of a recipe apart. */
  readonly kind: 'loss';
  /** Its settings with `type`. */
  readonly schema: LossSchema<Type, Shape>;
}

/**
 * Declares a loss. A row in losses/index.ts adds it to drmas; `lossFrom` adds one from a user's module.
 * @throws ArgumentError when a part of the declaration is missing, wrong or unknown: programs have no compiler
 *
 * @example
 * ```ts
 * import { defineLoss } from 'drmas';
 * import { z } from 'zod';
 *
 * // REINFORCE with the importance ratio, capped.
 * export const capped = defineLoss({
 *   type: 'capped',
 *   schema: { cap: z.number().gt(0).default(2).describe('The largest ratio that counts in full.') },
 *   source: 'an example',
 *   formula: '-sg(min(r, cap)) A log p',
 *   use: 'to see how a loss is declared',
 *   ratio: 'token',
 *   gradientOf: 'logprob',
 *   aggregate: 'token-mean',
 *   token: ({ cap }) => ({ ratio, advantage, logprob }, out) => {
 *     const weight = Math.min(ratio, cap);
 *     out.clipped = ratio > cap;
 *     out.loss = -weight * advantage * logprob;
 *     out.gradient = -weight * advantage;
 *   },
 * });
 * ```
 */
export function defineLoss<const Type extends string, Shape extends z.ZodRawShape, Context = undefined>(
  declaration: LossDefinition<Type, Shape, Context>,
): LossDeclaration<Type, Shape, Context> {
  const wrong = problemOf(declaration);
  if (wrong !== undefined) throw new ArgumentError(`defineLoss: ${wrong}`);
  requireKnown(declaration, DEFINITION, `defineLoss: '${declaration.type}' has the unknown field`);
  return {
    ...declaration,
    kind: 'loss',
    schema: z.strictObject({ type: z.literal(declaration.type), ...declaration.schema }),
  };
}

const DEFINITION: OptionNames<LossDefinition<string, z.ZodRawShape, unknown>> = {
  ...{ type: true, schema: true, source: true, formula: true, use: true, ratio: true, gradientOf: true, token: true },
  ...{ aggregate: true, prepare: true, divisor: true, metrics: true, protocolLoss: true, withoutAdvantage: true },
  weighsDemonstrations: true,
};

const RATIOS: readonly unknown[] = ['token', 'turn', 'sequence', 'product'] satisfies LossFacts['ratio'][];

/** The first thing that is wrong with a declaration, in words; undefined if nothing is. */
function problemOf<Context>(declaration: LossDefinition<string, z.ZodRawShape, Context>): string | undefined {
  const { type, schema, ratio, gradientOf, aggregate, token, prepare, divisor, metrics = {} } = declaration;
  if (typeof type !== 'string' || type === '') return `type is ${shown(type)}, expected a name`;
  if (type === 'demonstrations' || type === 'own')
    return `type is '${type}', which drmas uses itself; expected another name`;
  if (typeof schema !== 'object' || schema === null) return `'${type}' has no schema, expected its settings`;
  if (!RATIOS.includes(ratio)) return `'${type}' has the ratio ${shown(ratio)}, expected one of ${RATIOS.join(', ')}`;
  if (gradientOf !== 'ratio' && gradientOf !== 'logprob')
    return `'${type}' has gradientOf ${shown(gradientOf)}, expected 'ratio' or 'logprob'`;
  if (gradientOf === 'logprob' && ratio !== 'token')
    return `'${type}' has gradientOf 'logprob' with the ratio '${ratio}', expected the ratio 'token'`;
  if (aggregate === undefined ? !('aggregate' in schema) : !aggregations.options.includes(aggregate))
    return `'${type}' has the aggregate ${shown(aggregate)}, expected one of ${aggregations.options.join(', ')}, or a setting`;
  for (const [name, value] of Object.entries({
    token,
    prepare: prepare ?? token,
    divisor: divisor ?? token,
    ...metrics,
  }))
    if (typeof value !== 'function') return `'${type}' has the ${name} ${shown(value)}, expected a function`;
  const taken = Object.keys(metrics).find((name) => STANDARD_METRICS.has(name));
  if (taken !== undefined) return `'${type}' has the metric '${taken}', which every loss has; expected another name`;
  return undefined;
}

const shown = (value: unknown): string => JSON.stringify(value) ?? String(value);
