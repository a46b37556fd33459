/**
 * The declaration of an estimator: everything that recipes, checks, laws, studies and documents know about it stands in
 * its file.
 */
import { z } from 'zod';
import type { TurnRecord } from '../core/advantage.js';
import { parseSpec } from '../core/validation/parse-spec.js';
import { type Settings, settingsSchema } from './named-choices.js';
import { advanceNormalise, normalise, type Rule } from './normalise.js';
import type { TurnBatch } from './turn-batch.js';

/** One entry a turn: a number for all of its tokens, or one number a token. */
export type Advantages = ArrayLike<number | number[]>;

/**
 * Something that has to be computed before turns can be compared, because playing them does not tell it: a greedy
 * episode of the task, other ends of the episode from each turn on, a critic's values.
 */
export type Need = 'baseline' | 'branches' | 'values';

/** The field of a turn that has what is needed. */
export const FIELD_OF_NEED = { baseline: 'baseline', branches: 'baseline', values: 'values' } as const satisfies Record<
  Need,
  keyof TurnRecord
>;

/** Numbers of a turn that a law moves. */
export type Moved = 'reward' | 'stepReward' | 'agentStepReward' | 'baseline' | 'values';

/** The laws that an estimator obeys, which may depend on its choices. The tests hold every estimator to them. */
export interface Laws {
  /** When a constant is added to these numbers of every turn, no advantage changes. Empty where there are none. */
  readonly shift: readonly Moved[];
  /**
   * A positive factor of all rewards is taken out again (with `epsilon` 0), or passes through; neither where not given.
   */
  readonly takesScaleOut?: boolean;
  /** The relative error of that factor where an epsilon cannot be switched off. Default: rounding. */
  readonly scaleError?: number;
}

/** The properties by which others treat an estimator, instead of knowing its name. */
export interface Traits {
  /** What it needs that playing does not tell. */
  readonly needs?: Need;
  /** The smallest group of episodes that it can compare, and why, for an error message. */
  readonly groupSize?: { readonly least: number; readonly why: string };
  /**
   * Whether studies compare it `usually` or `on request`. Then it needs nothing but rewards and names, so that it can
   * be computed for anybody's log.
   */
  readonly compared?: 'usually' | 'on request';
  /** The estimator that a run with it is to be compared with first; the default one if none is given. */
  readonly rival?: string;
  /** Its advantages are weights of demonstrations, 0 or above, as the loss `cross-entropy` needs them. */
  readonly weighsDemonstrations?: boolean;
}

/**
 * Numbers by name that an estimator keeps from one step of a run to the next, and a checkpoint with them. Empty before
 * the first step, and for estimators that look at one step alone.
 */
export type EstimatorState = Readonly<Record<string, number>>;

/** How advantages are computed: by a choice of who is compared with whom, or by a computation of its own. */
type Computation<Choices> =
  | {
      readonly rule: (choices: Choices) => Rule;
      /** A plain rule has nothing to do afterwards, so that its laws follow from it. */
      readonly after?: undefined;
      readonly laws?: undefined;
    }
  | {
      readonly rule: (choices: Choices) => Rule;
      readonly after: (batch: TurnBatch, advantages: Float64Array) => Advantages;
      readonly laws: (choices: Choices) => Laws;
    }
  | {
      readonly compute: (batch: TurnBatch, choices: Choices, settings: Settings, state: EstimatorState) => Advantages;
      /** The state that the next step begins with, for an estimator that keeps something. */
      readonly advance?: (batch: TurnBatch, choices: Choices, state: EstimatorState) => EstimatorState;
      /** The laws of a first step. */
      readonly laws: (choices: Choices) => Laws;
    };

/** The schema of a recipe's `advantage` of one type. */
export type EstimatorSchema<Type extends string, Shape extends z.ZodRawShape> = z.ZodObject<
  { type: z.ZodLiteral<Type> } & Shape,
  z.core.$strict
>;

type ChoicesOf<Type extends string, Shape extends z.ZodRawShape> = z.output<EstimatorSchema<Type, Shape>>;

type Declaration<Type extends string, Shape extends z.ZodRawShape> = {
  readonly type: Type;
  /** Its choices beside `type`, with their ranges, defaults and descriptions. */
  readonly schema: Shape;
  /** The paper or the code that it is from. */
  readonly source: string;
  /** The advantage in the symbols of docs/estimators.md. */
  readonly formula: string;
  /** The situation to use it in. */
  readonly use: string;
  readonly traits?: Traits;
  /** The targets of a critic, one a token, for an estimator that needs its values. */
  readonly returns?: (batch: TurnBatch, choices: ChoicesOf<Type, Shape>) => number[][];
} & Computation<ChoicesOf<Type, Shape>>;

/** An estimator with all of its choices made. */
export interface OpenEstimator {
  readonly settings: Settings;
  /** Undefined for an estimator that is no choice of groups. */
  readonly rule: Rule | undefined;
  readonly laws: Laws;
  /**
   * Computes the advantages of a step that begins with `state`, and leaves it as it is.
   * @throws ArgumentError naming a turn that lacks what the estimator needs
   */
  compute(batch: TurnBatch, state?: EstimatorState): Advantages;
  /** The state that the step after this one begins with. */
  advance(batch: TurnBatch, state: EstimatorState): EstimatorState;
  /** The targets of a critic, one a token; undefined without one. @throws ArgumentError as `compute` */
  returns(batch: TurnBatch): number[][] | undefined;
}

/** A declared estimator. */
export interface EstimatorDeclaration<Type extends string = string, Shape extends z.ZodRawShape = z.ZodRawShape> {
  readonly type: Type;
  readonly schema: EstimatorSchema<Type, Shape>;
  readonly source: string;
  readonly formula: string;
  readonly use: string;
  readonly traits: Traits;
  /** Makes the choices, with defaults for those that are left out. @throws ArgumentError for one out of range */
  open(estimator: unknown): OpenEstimator;
}

export function defineEstimator<const Type extends string, Shape extends z.ZodRawShape>(
  declaration: Declaration<Type, Shape>,
): EstimatorDeclaration<Type, Shape> {
  const { type, source, formula, use, traits = {} } = declaration;
  const schema: EstimatorSchema<Type, Shape> = z.strictObject({ type: z.literal(type), ...declaration.schema });
  // A recipe's unknown key is a mistake; a program may hand the choices of one estimator to another.
  const lenient = schema.strip();
  return {
    type,
    schema,
    source,
    formula,
    use,
    traits,
    open(estimator) {
      const choices = parseSpec(lenient, estimator, 'advantage') as ChoicesOf<Type, Shape>;
      const settings = parseSpec(settingsSchema, estimator, 'advantage');
      const rule = 'rule' in declaration ? declaration.rule(choices) : undefined;
      return {
        settings,
        rule,
        laws: declaration.laws?.(choices) ?? lawsOf(rule),
        compute(turns, state = {}) {
          const batch = turns.sharing(settings.shareStatistics);
          if ('compute' in declaration) return declaration.compute(batch, choices, settings, state);
          const advantages = normalise(batch, declaration.rule(choices), settings, state);
          return declaration.after === undefined ? advantages : declaration.after(batch, advantages);
        },
        advance(turns, state) {
          const batch = turns.sharing(settings.shareStatistics);
          if (!('compute' in declaration)) return advanceNormalise(batch, declaration.rule(choices), settings, state);
          return declaration.advance === undefined ? {} : declaration.advance(batch, choices, state);
        },
        returns: (batch) => declaration.returns?.(batch, choices),
      };
    },
  };
}

/** The laws of a rule: a constant moves the mean along, and a division by a spread takes the scale out. */
function lawsOf(rule: Rule | undefined): Laws {
  return { shift: ['reward'], takesScaleOut: rule?.spread !== 'none' };
}
