/**
 * A signal: numbers of a step's turns that the episodes do not contain, such as a critic's values. An estimator names
 * the signal that it needs, or a setting of a policy needs one. Each signal is one file of
 * `src/method/training/signals`, with everything that it plays, scores, costs and requires.
 */

import type { Capabilities } from '@drmas/engine/contract';
import type { Episode, EpisodeGroup, Turn, TurnRecord } from '@drmas/engine/nouns';
import type { Versions } from '../../../teams/rollout.js';
import type { OpenEstimator } from '../../advantage/define-estimator.js';
import type { Assignment } from '../../recipe/assignment.js';
import type { Recipe } from '../../recipe/recipe.js';
import type { TurnChain } from '../samples/chains.js';
import type { Learner } from './learner.js';
import type { Playing } from './playing.js';

/** The numbers of one turn; R is the number of its response tokens. */
export interface TurnSignals {
  readonly baseline?: number;
  /** The reward of each response token, added to the turn's reward. */
  readonly tokenRewards?: readonly number[]; // [R]
  /** Numbers that are added to the advantages of the response tokens, after the estimator and an agent's weight. */
  readonly tokenAdvantages?: readonly number[]; // [R]
  readonly values?: Float32Array; // [R]
  readonly referenceLogprobs?: Float32Array; // [R]
  readonly kl?: readonly number[]; // [R]
  /** Numbers of other signals, by the signal's name: one for the turn, or one for each response token. */
  readonly signals?: Readonly<Record<string, number | readonly number[]>>;
}

/** Turns without an entry have no numbers. */
export type SignalsByTurn = ReadonlyMap<Turn, TurnSignals>;

/** The extra rollouts of a signal. No policy learns from them. */
export interface ExtraRollouts {
  /** The episodes, each with only the turns that were sampled for the signal. */
  readonly episodes: readonly Episode[];
  readonly byTurn: SignalsByTurn;
  /** The reason why some of them could not be used, for a person. */
  readonly fault?: string;
}

export interface SignalSettings {
  readonly estimator: OpenEstimator;
  readonly policies: Recipe['policies'];
}

export interface PlayedGroups {
  readonly step: number;
  /** The groups that policies learn from. */
  readonly groups: readonly EpisodeGroup[];
  /** The published versions of the policies that played them. Default: the latest versions. */
  readonly versions?: Versions | undefined;
}

export interface LearnerTurns {
  readonly learner: Learner;
  readonly chains: readonly TurnChain[];
}

/** The coefficients of KL penalties, which a controller may change from step to step. */
export interface Coefficients {
  of(learner: Pick<Learner, 'name' | 'kl'>): number;
}

/** A step of a plan: its numbers of tasks, of episodes to learn from, and of calls in an episode. */
export interface PlannedStep {
  readonly estimator: OpenEstimator;
  readonly tasks: number;
  readonly episodes: number;
  /** The calls in an episode: of all agents, and of the learning agents. */
  readonly calls: { readonly all: number; readonly learnt: number };
}

export interface PlannedRollouts {
  readonly episodes: number;
  /** The number of complete episodes with the same number of tokens. An episode may begin with turns of another one. */
  readonly whole: number;
  readonly note?: string;
}

/** A requirement of a recipe. If the test is false, the message describes the mistake. */
export interface Requirement {
  readonly path: string;
  readonly test: boolean;
  readonly message: string;
}

export interface Signal {
  /** The name that an estimator uses (`traits.needs`). */
  readonly name: string;
  /** The field of a turn in which an estimator finds the number. Undefined if only the loss uses it. */
  readonly field?: keyof TurnRecord;
  /** Whether the settings need it. Default: the estimator needs it. */
  wanted?(settings: SignalSettings): boolean;
  /** Plays extra rollouts with the weights that played the step. */
  play?(run: Playing & { readonly estimator: OpenEstimator }, played: PlayedGroups): Promise<ExtraRollouts>;
  /** Scores the turns of a step just before policies learn from them. */
  score?(turns: readonly LearnerTurns[], coefficients: Coefficients): Promise<SignalsByTurn>;
  plan?(step: PlannedStep): PlannedRollouts;
  checks?(settings: SignalSettings, assignment: Assignment): Iterable<Requirement>;
  /** Its requirement of the backend of each policy; `what` names it in messages. */
  readonly backend?: { readonly what: string; has(can: Capabilities): boolean };
}
