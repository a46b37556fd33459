import { ArgumentError } from '../core/errors.js';
import { whiten } from '../loss/whiten.js';
import type { Batch } from './batch.js';
import type { Estimator } from './estimator.js';
import { gigpo } from './estimators/gigpo.js';
import { magrpo } from './estimators/magrpo.js';
import { passK } from './estimators/pass-k.js';
import { gae, gaeReturns, reinforcePlusPlus, remax } from './estimators/token-level.js';
import { normalise, type Pool, type Rule, type Settings } from './partition.js';
import { rejection } from './rejection.js';

type Of<Type extends Estimator['type']> = Extract<Estimator, { type: Type }>;

/** One entry a turn: a number for all of its tokens, or one number a token. */
type Advantages = ArrayLike<number | number[]>;

/** What somebody has to find out before turns can be compared: playing them does not tell. */
export type Need = 'baseline' | 'values';

/** How one estimator is computed: a choice of who is compared with whom, or a computation of its own. */
type Entry<Type extends Estimator['type']> = {
  readonly needs?: Need;
  /** What a critic learns to predict, for the estimator that needs its values. */
  readonly returns?: (batch: Batch, estimator: Of<Type>) => number[][];
} & (
  | {
      readonly rule: (estimator: Of<Type>) => Rule;
      readonly after?: (batch: Batch, advantages: Float64Array) => Advantages;
    }
  | { readonly compute: (batch: Batch, estimator: Of<Type>, settings: Settings) => Advantages }
);

const unitPool = (unit: 'episode' | 'turn'): Pool => (unit === 'episode' ? 'episodes' : 'turns');

/** Every estimator by name; a new one is a row here (and, when it is no choice of groups, a file). */
const estimators: { readonly [Type in Estimator['type']]: Entry<Type> } = {
  // Shao et al. 2024 (DeepSeekMath), at the level of episodes as in the Dr. MAS paper's code.
  grpo: { rule: () => ({ score: 'episode', mean: 'episodes', spread: 'episodes' }) },
  // Liu et al. 2025: no division by the spread.
  'dr-grpo': { rule: () => ({ score: 'episode', mean: 'episodes', spread: 'none' }) },
  // The Dr. MAS paper (arXiv 2602.08847): every agent measured against itself; then its two ablations.
  drmas: { rule: ({ spread = 'agent' }) => ({ score: 'turn', mean: 'agent', spread }) },
  'drmas-mean': { rule: () => ({ score: 'turn', mean: 'agent', spread: 'episodes' }) },
  'drmas-std': { rule: () => ({ score: 'turn', mean: 'episodes', spread: 'agent' }) },
  'grpo-turn': { rule: () => ({ score: 'turn', mean: 'turns', spread: 'turns' }) },
  partition: {
    rule: ({ score, mean, spread, unit }) => ({
      score,
      mean: mean === 'task' ? unitPool(unit) : mean,
      spread: spread === 'task' ? unitPool(unit) : spread,
    }),
  },
  // Ahmadian et al. 2024: the mean of the others as the baseline.
  rloo: {
    rule: ({ byAgent }) => ({
      score: 'turn',
      mean: byAgent === true ? 'agent' : 'episodes',
      spread: 'none',
      leaveOneOut: true,
    }),
  },
  // Hu et al. 2025: the group's mean as the baseline, then whitening over the batch.
  'reinforce++-baseline': {
    rule: ({ byAgent }) => ({ score: 'turn', mean: byAgent === true ? 'agent' : 'episodes', spread: 'none' }),
    after: (batch, advantages) => whiten([advantages], [batch.numbers('length', (turn) => turn.length)])[0] ?? [],
  },
  // Zhao et al. 2025 (arXiv 2510.11062): groups of (task, agent, turn of the team's workflow).
  'at-grpo': { rule: () => ({ score: 'turn', mean: 'agent-step', spread: 'agent-step' }) },
  magrpo: { compute: magrpo },
  'grpo-passk': { compute: passK },
  rejection: { compute: rejection },
  gigpo: { compute: gigpo },
  'reinforce++': { compute: reinforcePlusPlus },
  remax: { compute: remax, needs: 'baseline' },
  gae: { compute: gae, needs: 'values', returns: gaeReturns },
};

/** What the estimator needs of turns that playing them does not tell. @throws ArgumentError for an unknown type */
export function needOf(estimator: Estimator): Need | undefined {
  return entryOf(estimator).needs;
}

/** What a critic is to predict at every token; undefined for an estimator without one. @throws ArgumentError as `compute` */
export function returnsOf(batch: Batch, estimator: Estimator): number[][] | undefined {
  return entryOf(estimator).returns?.(batch, estimator);
}

/** The rule behind an estimator, `undefined` for one that is no choice of groups. @throws ArgumentError for an unknown type */
export function ruleOf(estimator: Estimator): Rule | undefined {
  const entry = entryOf(estimator);
  return 'rule' in entry ? entry.rule(estimator) : undefined;
}

/** @throws ArgumentError for an unknown type or a choice out of range, or a turn that lacks what the estimator needs */
export function compute(batch: Batch, estimator: Estimator): Advantages {
  const entry = entryOf(estimator);
  const settings = settingsOf(estimator);
  if ('compute' in entry) return entry.compute(batch, estimator, settings);
  const advantages = normalise(batch, entry.rule(estimator), settings);
  return entry.after === undefined ? advantages : entry.after(batch, advantages);
}

/** The named choices with their defaults. @throws ArgumentError for a choice out of range */
export function settingsOf(estimator: Estimator): Settings {
  const given = estimator as Partial<{ [Name in keyof Settings]: Settings[Name] | undefined }>;
  const { epsilon = 1e-6, minimumSpread = 1e-6, singleton = 'zero', episodeScore = 'mean' } = given;
  for (const [name, value] of Object.entries({ epsilon, minimumSpread })) {
    if (!(value >= 0)) throw new ArgumentError(`advantage.${name} must be a number >= 0, got ${value}`);
  }
  requireOne('singleton', singleton, ['zero', 'raw', 'batch']);
  requireOne('episodeScore', episodeScore, ['mean', 'outcome+penalties', 'outcome', 'first']);
  return { epsilon, minimumSpread, singleton, episodeScore };
}

function entryOf(estimator: Estimator): Entry<Estimator['type']> {
  requireOne('type', estimator.type, Object.keys(estimators));
  // The table pairs each type with its own estimator, which the compiler cannot follow through an index.
  return estimators[estimator.type] as Entry<Estimator['type']>;
}

function requireOne(name: string, value: string, choices: readonly string[]): void {
  if (choices.includes(value)) return;
  throw new ArgumentError(`advantage.${name} must be one of ${choices.join(', ')}, got ${JSON.stringify(value)}`);
}
