/** The declaration of a loss: all that recipes, objectives, backends, laws and documents know about it. */
import { z } from 'zod';
import type { Aggregation } from './loss-settings.js';

/** The contribution of one token. */
export interface TokenOutcome {
  loss: number;
  /** The derivative of the loss by what `LossFacts.gradientOf` names, before aggregation. */
  gradient: number;
  /** The clipped side of the objective was the one that counted. */
  clipped: boolean;
  /** The bound of the dual clip was the one that counted. */
  clippedLower: boolean;
}

/**
 * Writes the outcome of one token with advantage A != 0. It must be positively homogeneous in the advantage: c · A
 * gives c times the loss and the gradient for c > 0. The exact merging of identical rows (objective/merged-samples.ts)
 * and the importance correction (a weight on the advantage) rest on it. A token whose advantage is 0 adds nothing and
 * is left out.
 */
export type TokenLoss = (ratio: number, advantage: number, logprob: number, out: TokenOutcome) => void;

/** The facts that others ask of a loss instead of knowing its name. */
export interface LossFacts {
  /**
   * Every token has its own ratio, or the tokens of a turn (a run of the mask) or of the sequence share their geometric
   * mean, or those of the sequence their product: the ratio of its probabilities.
   */
  readonly ratio: 'token' | 'turn' | 'sequence' | 'product';
  /**
   * The variable that the gradient is taken by: the log of the ratio, or the log-prob of the token with the ratio held
   * constant. The second goes with `ratio: 'token'` only.
   */
  readonly gradientOf: 'ratio' | 'logprob';
  /** The loss is divided by 1 + the clipping bias, so the log-probs of all rows come before the first gradient. */
  readonly dampensClipping?: true;
  /**
   * Log ratios are measured from the KL of the policy from the old one, a constant of the gradient that is estimated
   * over all rows: their log-probs come before the first gradient. It goes with `ratio: 'product'` only.
   */
  readonly fromKl?: true;
  /**
   * The mini-batch is the samples with an advantage alone: the normalizer and other terms leave the others out.
   * Advantages are then weights of demonstrations and must not be negative.
   */
  readonly selects?: true;
}

/** A loss that servers of the training protocol know by name, with the bounds of its ratio. */
export interface ProtocolLoss {
  readonly name: 'ppo' | 'cispo';
  readonly low: number;
  readonly high: number;
}

/** A policy loss with its settings, ready to be applied to rows. */
export interface LossKind extends LossFacts {
  readonly aggregate: Aggregation;
  readonly token: TokenLoss;
  /** The loss of the protocol that is exactly this one, importance correction aside; undefined where there is none. */
  readonly protocolLoss?: ProtocolLoss | undefined;
}

/** The schema of a recipe's `loss` of one type. */
export type LossSchema<Type extends string, Shape extends z.ZodRawShape> = z.ZodObject<
  { type: z.ZodLiteral<Type> } & Shape,
  z.core.$strict
>;

type SettingsOf<Type extends string, Shape extends z.ZodRawShape> = Readonly<z.output<LossSchema<Type, Shape>>>;

interface Declaration<Type extends string, Shape extends z.ZodRawShape> extends LossFacts {
  readonly type: Type;
  /** The paper, and the equations in it. */
  readonly source: string;
  /** The loss of a token, in the symbols of docs/losses.md. */
  readonly formula: string;
  /** The situation to use it in. */
  readonly use: string;
  /** Its settings beside `type`, with their ranges and defaults. */
  readonly schema: Shape;
  /** The aggregation of a loss that has only one; others have the setting `aggregate`. */
  readonly aggregate?: Aggregation;
  /**
   * The loss with these settings.
   * @throws ArgumentError for a number out of range: no schema checks what a program passes
   */
  token(settings: SettingsOf<Type, Shape>): TokenLoss;
  /** The loss of the protocol that is exactly this one with these settings. */
  protocolLoss?(settings: SettingsOf<Type, Shape>): ProtocolLoss | undefined;
}

/** A declared loss. */
export interface LossDeclaration<Type extends string = string, Shape extends z.ZodRawShape = z.ZodRawShape>
  extends Omit<Declaration<Type, Shape>, 'schema'> {
  /** Its settings with `type`. */
  readonly schema: LossSchema<Type, Shape>;
}

/** Declares a loss; a row in losses/index.ts makes it known. */
export function defineLoss<const Type extends string, Shape extends z.ZodRawShape>(
  declaration: Declaration<Type, Shape>,
): LossDeclaration<Type, Shape> {
  return {
    ...declaration,
    schema: z.strictObject({ type: z.literal(declaration.type), ...declaration.schema }),
  };
}
