/** Turns an open run into a run for reinforcement: with its estimator, signals and learners. */
import type { ModelHandle } from '../../../engine/contract.js';
import { lossOf } from '../../recipe/policy-losses.js';
import { estimatorOf, type Recipe } from '../../recipe/recipe.js';
import type { Critic, Learner, TrainedModel } from '../run/learner.js';
import type { OpenRun, TrainingRun } from '../run/run-state.js';
import { learntChains } from '../samples/learnt-chains.js';
import { wantedSignals } from './index.js';

/** The references and critics, by the policy's name. */
export interface ReferencesAndCritics {
  readonly references?: ReadonlyMap<string, ModelHandle>;
  readonly critics?: ReadonlyMap<string, Critic>;
}

/** Adds to an open run the parts that reinforcement needs. Opens nothing. */
export function trainingRun(run: OpenRun, models: ReferencesAndCritics = {}): TrainingRun {
  const { recipe, trained } = run;
  const estimator = estimatorOf(recipe);
  const signals = wantedSignals({ estimator, policies: recipe.policies });
  const learners = trained.flatMap((model) => learnerOf(model, recipe, models) ?? []);
  return { ...run, estimator, signals, learners };
}

function learnerOf(
  { name, handle, backend, settings, agents }: TrainedModel,
  recipe: Pick<Recipe, 'loss' | 'policies' | 'lists' | 'agents'>,
  { references, critics }: ReferencesAndCritics,
): Learner | undefined {
  if (settings === undefined) return undefined;
  return {
    name,
    handle,
    capabilities: backend.capabilities,
    settings,
    loss: lossOf(recipe, name),
    agents: Object.fromEntries(Object.entries(recipe.agents).filter(([agent]) => agents.includes(agent))),
    reference: references?.get(name),
    critic: critics?.get(name),
    kl: settings.kl,
    turns: (groups) => learntChains(name, groups),
  };
}
