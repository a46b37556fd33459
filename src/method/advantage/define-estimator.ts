/**
 * The declaration of an estimator. Its file contains everything that recipes, checks, laws, studies and documents need.
 */

import { ArgumentError, isObject, type OptionNames, parseSpec, requireKnown } from '@drmas/engine/errors';
import type { TurnRecord } from '@drmas/engine/nouns';
import { z } from 'zod';
import { type Settings, settingsSchema } from './named-choices.js';
import { advanceNormalise, hasScoresOf, normalise, type Rule } from './normalise.js';
import type { TurnBatch } from './turn-batch.js';

/** One entry a turn: a number for all of its tokens, or one number a token. */
export type Advantages = ArrayLike<number | number[]>;

/** The numbers of a turn that a law changes. */
export type Moved = 'reward' | 'stepReward' | 'agentStepReward' | 'baseline' | 'values';

/** The laws that an estimator obeys, which may depend on its choices. The tests hold every estimator to them. */
export interface Laws {
  /**
   * If a constant is added to these numbers of every turn, no advantage changes. `reward` stands for the outcomes too.
   * Empty if no such law holds.
   */
  readonly shift: readonly Moved[];
  /**
   * True if a positive factor of all rewards does not change the advantages (with `epsilon` and `minimumSpread` 0).
   * False if the advantages get the same factor. Absent if neither holds.
   */
  readonly takesScaleOut?: boolean;
  /** The relative error of that law for an estimator whose epsilon cannot be 0. Default: rounding. */
  readonly scaleError?: number;
}

/**
 * How penalties of turns, and a KL in the reward, reach the advantages: `counted` in units of the reward; `normalised`,
 * so that their coefficients have no effect; or `left out`.
 */
export type PenaltyUse = 'counted' | 'normalised' | 'left out';

/** Properties of an estimator. Other code reads them instead of the estimator's name. */
export interface Traits {
  /**
   * The name of the signal that it needs (`src/method/training/signals`): numbers of turns that the episodes alone do
   * not have, such as a critic's values.
   */
  readonly needs?: string;
  /** The smallest group of episodes that the estimator can compare, and the reason, for an error message. */
  readonly groupSize?: { readonly least: number; readonly why: string };
  /**
   * Whether studies compare this estimator `usually` or only `on request`. An estimator with this property needs only
   * rewards and names, so it can be computed for any log.
   */
  readonly compared?: 'usually' | 'on request';
  /** The estimator to compare a run with first. Default: the default estimator. */
  readonly rival?: string;
  /** Its advantages are weights of demonstrations, 0 or above, as the loss `cross-entropy` needs them. */
  readonly weighsDemonstrations?: boolean;
  /** It needs rewards of 0 or more. Costs and penalties can make them negative. */
  readonly needsNoNegative?: boolean;
  /** It has weights of its own for the named parts of rewards, so it does not read the recipe's. */
  readonly weighsParts?: boolean;
  /** The choices that have no effect if a task is played once. */
  readonly groupChoices?: readonly string[];
}

/**
 * Named numbers that an estimator keeps from one step of a run to the next. Checkpoints store them. Empty before the
 * first step, and for estimators without a state.
 */
export type EstimatorState = Readonly<Record<string, number>>;

/** The computation of the advantages: a rule (who is compared with whom), or a function. */
type Computation<Choices> =
  | {
      readonly rule: (choices: Choices) => Rule;
      /** A plain rule has no further computation, so its laws follow from the rule. */
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
      readonly advance?: (batch: TurnBatch, choices: Choices, state: EstimatorState) => EstimatorState;
      readonly laws?: (choices: Choices) => Laws;
    };

/** The schema of a recipe's `advantage` of one type. */
export type EstimatorSchema<Type extends string, Shape extends z.ZodRawShape> = z.ZodObject<
  { type: z.ZodLiteral<Type> } & Shape,
  z.core.$strict
>;

type ChoicesOf<Type extends string, Shape extends z.ZodRawShape> = z.output<EstimatorSchema<Type, Shape>>;

type EstimatorDefinition<Type extends string, Shape extends z.ZodRawShape> = {
  readonly type: Type;
  /** The estimator's settings besides `type`, with their ranges, defaults and descriptions. */
  readonly schema: Shape;
  /** The source: a paper or code. */
  readonly source: string;
  /** The advantage in the symbols of docs/estimators.md. */
  readonly formula: string;
  readonly use: string;
  readonly traits?: Traits;
  /**
   * Default: a rule tells, and other estimators have them `counted`. Recipes with penalties without effect are refused.
   */
  readonly penalties?: (choices: ChoicesOf<Type, Shape>) => PenaltyUse;
  /**
   * The choices that have no effect beside these, for an estimator without a rule; a rule tells its own. Recipes that
   * set one of them are refused.
   */
  readonly unused?: (choices: ChoicesOf<Type, Shape>) => readonly string[];
  /** The critic's targets, one a token, for an estimator that needs values. */
  readonly returns?: (batch: TurnBatch, choices: ChoicesOf<Type, Shape>) => number[][];
} & Computation<ChoicesOf<Type, Shape>>;

type AnyField<Definition> = Definition extends unknown ? keyof Definition : never;
type AnyDefinition = EstimatorDefinition<string, z.ZodRawShape>;

const DEFINITION: OptionNames<Record<AnyField<AnyDefinition>, unknown>> = {
  ...{ type: true, schema: true, source: true, formula: true, use: true, traits: true, penalties: true, unused: true },
  ...{ returns: true, rule: true, after: true, compute: true, advance: true, laws: true },
};
const TRAITS: OptionNames<Traits> = {
  ...{ needs: true, groupSize: true, compared: true, rival: true, weighsDemonstrations: true, needsNoNegative: true },
  ...{ weighsParts: true, groupChoices: true },
};
const RULE: OptionNames<Rule> = { score: true, mean: true, spread: true, leaveOneOut: true, shared: true };

/** An estimator with all of its settings. */
export interface OpenEstimator {
  readonly type: string;
  readonly traits: Traits;
  /** The settings, including defaults. */
  readonly choices: Readonly<Record<string, unknown>>;
  readonly settings: Settings;
  /** Undefined for an estimator without a rule. */
  readonly rule: Rule | undefined;
  readonly laws: Laws;
  readonly penalties: PenaltyUse;
  /** The choices that differ from their defaults and have no effect beside the others. */
  readonly unused: readonly string[];
  /** The choices that differ from their defaults and have no effect if a task is played once. */
  readonly unusedAlone: readonly string[];
  /**
   * Computes the advantages of a step that begins with `state`. Does not change `state`.
   * @throws ArgumentError with the turn that lacks an input of the estimator, or that gets no finite number
   */
  compute(batch: TurnBatch, state?: EstimatorState): Advantages;
  /** The state that the step after this one begins with. */
  advance(batch: TurnBatch, state: EstimatorState): EstimatorState;
  /** The critic's targets, one a token; undefined without a critic. @throws ArgumentError as `compute` */
  returns(batch: TurnBatch): number[][] | undefined;
}

/** A declared estimator. */
export interface EstimatorDeclaration<Type extends string = string, Shape extends z.ZodRawShape = z.ZodRawShape> {
  /** Identifies the kind of a recipe's plug-in. */
  readonly kind: 'estimator';
  readonly type: Type;
  readonly schema: EstimatorSchema<Type, Shape>;
  readonly source: string;
  readonly formula: string;
  readonly use: string;
  readonly traits: Traits;
  /** Adds the defaults to the given choices. @throws ArgumentError if a choice is out of range */
  open(estimator: unknown): OpenEstimator;
}

/**
 * Defines an estimator, which turns the rewards of a step into advantages. A recipe takes your own estimator with `use:
 * [estimator]` and chooses it with `advantage: { type: 'mine' }`. Give either `compute`, which returns one advantage
 * for each turn, or `rule`, which decides which turns are compared.
 *
 * @example
 * ```ts
 * import { defineEstimator } from 'drmas/advantages';
 * import { z } from 'zod';
 *
 * // The reward minus a constant.
 * export const constant = defineEstimator({
 *   type: 'constant',
 *   schema: { baseline: z.number().default(0.5).describe('The reward that gets the advantage 0.') },
 *   source: 'an example',
 *   formula: 'r - `baseline`',
 *   use: 'to see how an estimator is defined',
 *   compute: (batch, { baseline }) => batch.rewards.map((reward) => reward - baseline),
 * });
 * ```
 */
export function defineEstimator<const Type extends string, Shape extends z.ZodRawShape>(
  declaration: EstimatorDefinition<Type, Shape>,
): EstimatorDeclaration<Type, Shape> {
  const { type, source, formula, use, traits = {} } = declaration;
  requireKnown(declaration, DEFINITION, `defineEstimator: '${type}' has the unknown field`);
  requireKnown(traits, TRAITS, `defineEstimator: the traits of '${type}' have the unknown field`);
  const schema: EstimatorSchema<Type, Shape> = z.strictObject({ type: z.literal(type), ...declaration.schema });
  // In a recipe an unknown key is a mistake. A program may pass the choices of one estimator to another.
  const lenient = schema.strip();
  return {
    kind: 'estimator',
    type,
    schema,
    source,
    formula,
    use,
    traits,
    open(estimator) {
      const choices = parseSpec(lenient, estimator, 'advantage') as ChoicesOf<Type, Shape>;
      // Of the choices that the type has: choices of other types do not count.
      const settings = parseSpec(settingsSchema, choices, 'advantage');
      const rule = 'rule' in declaration ? declaration.rule(choices) : undefined;
      if (rule !== undefined) requireKnown(rule, RULE, `the rule of '${type}' has the unknown field`);
      const unused = [...unusedOf(rule), ...(declaration.unused?.(choices) ?? [])];
      const isSet = (name: string) => {
        const choice: z.ZodType | undefined = declaration.schema[name] as z.ZodType | undefined;
        const given = JSON.stringify(choices[name as keyof typeof choices]);
        return choice !== undefined && given !== JSON.stringify(choice.safeParse(undefined).data);
      };
      const advantagesOf = { type, what: 'advantages' } as const;
      return {
        type,
        traits,
        choices,
        settings,
        rule,
        laws: declaration.laws?.(choices) ?? lawsOf(rule, settings),
        penalties: declaration.penalties?.(choices) ?? penaltiesOf(rule, settings),
        unused: unused.filter(isSet),
        unusedAlone: (traits.groupChoices ?? []).filter(isSet),
        compute(turns, state = {}) {
          const batch = turns.sharing(settings.shareStatistics);
          if ('compute' in declaration)
            return checkedNumbers(advantagesOf, turns, declaration.compute(batch, choices, settings, state));
          const advantages = normalise(batch, declaration.rule(choices), settings, state);
          return declaration.after === undefined
            ? advantages
            : checkedNumbers(advantagesOf, turns, declaration.after(batch, advantages));
        },
        advance(turns, state) {
          const batch = turns.sharing(settings.shareStatistics);
          if (!('compute' in declaration)) return advanceNormalise(batch, declaration.rule(choices), settings, state);
          return declaration.advance === undefined
            ? {}
            : checkedState(type, declaration.advance(batch, choices, state));
        },
        returns(batch) {
          const returns = declaration.returns?.(batch, choices);
          return returns && checkedNumbers({ type, what: 'returns' }, batch, returns);
        },
      };
    },
  };
}

/**
 * The numbers that a computation gave the turns. A user may have written it, and a number that is missing, or that is
 * none, would reach the weights.
 * @throws ArgumentError unless each turn has a finite number or one for each of its tokens; returns are of tokens alone
 */
function checkedNumbers<Computed extends Advantages>(
  { type, what }: { readonly type: string; readonly what: 'advantages' | 'returns' },
  batch: TurnBatch,
  computed: Computed,
): Computed {
  const { turns } = batch;
  const count = isList(computed)
    ? `${computed.length} ${what}`
    : `${Object.prototype.toString.call(computed)} as ${what}`;
  if (!isList(computed) || computed.length !== turns.length)
    throw new ArgumentError(`the estimator '${type}' gave ${count}, expected one for each of ${turns.length} turns`);
  for (let i = 0; i < turns.length; i++) {
    const given: unknown = computed[i];
    if (what === 'advantages' && Number.isFinite(given)) continue;
    const { tokenRewards, length = tokenRewards?.length } = turns[i] as TurnRecord;
    if (areNumbers(given, length)) continue;
    const expected = `${what === 'advantages' ? 'a finite number, or ' : ''}a list with one for each`;
    throw new ArgumentError(
      `${batch.nameOf(i)}: the ${what} by '${type}' are ${Array.isArray(given) ? `[${given.join(', ')}]` : given}, ` +
        `expected ${expected}${length === undefined ? ' token' : ` of ${length} tokens`}`,
    );
  }
  return computed;
}

const isList = (value: unknown): value is ArrayLike<unknown> =>
  Array.isArray(value) || (ArrayBuffer.isView(value) && 'length' in value);

function areNumbers(value: unknown, length: number | undefined): boolean {
  if (!Array.isArray(value) || value.length !== (length ?? value.length)) return false;
  for (let t = 0; t < value.length; t++) if (!Number.isFinite(value[t])) return false; // `every` would skip holes
  return true;
}

/** @throws ArgumentError for a state that a checkpoint cannot keep */
function checkedState(type: string, state: EstimatorState): EstimatorState {
  const odd = isObject(state) && Object.entries(state).find(([, number]) => !Number.isFinite(number));
  if (odd === undefined) return state;
  const has = odd === false ? String(state) : `${odd[0]}: ${odd[1]}`;
  throw new ArgumentError(`the estimator '${type}' has the state ${has}, expected an object with finite numbers`);
}

/** The laws of a rule: a mean removes an added constant, and a division by a spread removes the scale. */
function lawsOf(rule: Rule | undefined, { singleton }: Settings): Laws {
  if (rule === undefined) return { shift: [] };
  const divides = rule.spread !== 'none';
  // A group of one keeps its reward as it is.
  if (singleton === 'raw') return { shift: [], ...(divides ? {} : { takesScaleOut: false }) };
  return { shift: ['reward'], takesScaleOut: divides };
}

function unusedOf(rule: Rule | undefined): string[] {
  if (rule === undefined) return [];
  const { score, mean, spread } = rule;
  const pools = [mean, spread];
  const byEpisode = score === 'episode' || pools.includes('episodes');
  const ofTask = (score === 'episode' || score === 'turn') && pools.every((pool) => TASK_POOLS.has(pool));
  return [
    ...(spread === 'none' ? ['epsilon', 'minimumSpread'] : []),
    ...(byEpisode ? [] : ['episodeScore']),
    ...(ofTask ? ['shareStatistics'] : []),
  ];
}

const TASK_POOLS: ReadonlySet<string> = new Set<Rule['spread']>(['episodes', 'turns', 'none']);

/** The statistics that a rule computes from turns or agents contain their penalties, whatever an episode's score is. */
function penaltiesOf(rule: Rule | undefined, { episodeScore }: Settings): PenaltyUse {
  if (rule === undefined || rule.score !== 'episode' || episodeScore !== 'outcome') return 'counted';
  const pools = [rule.mean, rule.spread];
  return pools.every((pool) => pool === 'none' || hasScoresOf(pool)) ? 'left out' : 'counted';
}
