/** The models that a run trains. Each is made once, when the run opens, and passed on as a value. */

import type {
  Backend,
  Capabilities,
  CriticHandle,
  ModelHandle,
  PolicyHandle,
  WeightsSpec,
} from '@drmas/engine/contract';
import type { AnyLoss } from '@drmas/engine/loss';
import type { EpisodeGroup } from '@drmas/engine/nouns';
import type { AssignedModel } from '../../recipe/assignment.js';
import type { CriticSettings, KlSettings } from '../../recipe/learning.js';
import type { Recipe } from '../../recipe/recipe.js';
import type { TurnChain } from '../samples/chains.js';

/** A model that reinforcement or the warm start trains. */
export interface TrainedModel extends AssignedModel {
  readonly handle: PolicyHandle;
  readonly backend: Backend;
  readonly weights: WeightsSpec;
  /** The policy's section of the recipe; undefined for a frozen model, which only the warm start trains. */
  readonly settings: Recipe['policies'][string] | undefined;
  readonly loss: AnyLoss | undefined;
  readonly learnsDemonstrations: boolean;
  /** A text that is equal for models on one backend. It may contain a server's key: never show or store it. */
  readonly backendKey: string;
}

export interface Critic {
  readonly handle: CriticHandle;
  readonly settings: CriticSettings;
}

export interface Learner {
  readonly name: string;
  readonly handle: PolicyHandle;
  readonly capabilities: Capabilities;
  readonly settings: Recipe['policies'][string];
  readonly loss: AnyLoss;
  readonly agents: Readonly<Record<string, Recipe['agents'][string]>>;
  readonly reference?: ModelHandle | undefined;
  readonly critic?: Critic | undefined;
  readonly kl?: KlSettings | undefined;
  /** The turns of a step that it learns from, as chains, in the order of `learntChains`. */
  turns(groups: readonly EpisodeGroup[]): readonly TurnChain[];
}

/** The number of a policy's first steps in which it waits for its critic. 0 without a critic. */
export const stepsAhead = ({ critic }: Pick<Learner, 'critic'>): number => critic?.settings.aheadSteps ?? 0;

/** The same run, but its policies learn from the first step on instead of waiting for their critics. */
export function withoutWaiting<Run extends { readonly learners: readonly Learner[] }>(run: Run): Run {
  const learners = run.learners.map((learner): Learner => {
    const { critic } = learner;
    return critic === undefined
      ? learner
      : { ...learner, critic: { ...critic, settings: { ...critic.settings, aheadSteps: 0 } } };
  });
  return { ...run, learners };
}
