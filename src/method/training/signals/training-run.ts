/** Turns an open run into a run for reinforcement: with its estimator, signals and learners. */

import type { ModelHandle } from '@drmas/engine/contract';
import type { Critic, Learner, TrainedModel } from '../run/learner.js';
import type { OpenRun, TrainingRun } from '../run/run-state.js';
import { learntChains } from '../samples/chains.js';
import { wantedSignals } from './index.js';

interface ReferencesAndCritics {
  readonly references?: ReadonlyMap<string, ModelHandle>;
  readonly critics?: ReadonlyMap<string, Critic>;
}

/** Adds to an open run the parts that reinforcement needs. Opens nothing. */
export function trainingRun(run: OpenRun, models: ReferencesAndCritics = {}): TrainingRun {
  const learners = run.trained.flatMap((model) => learnerOf(model, run.agents, models) ?? []);
  const policies = Object.fromEntries(learners.map(({ name, settings }) => [name, settings]));
  return { ...run, signals: wantedSignals({ estimator: run.estimator, policies }), learners };
}

function learnerOf(
  { name, handle, backend, settings, loss, agents }: TrainedModel,
  agentSettings: OpenRun['agents'],
  { references, critics }: ReferencesAndCritics,
): Learner | undefined {
  if (settings === undefined || loss === undefined) return undefined;
  return {
    name,
    handle,
    capabilities: backend.capabilities,
    settings,
    loss,
    agents: Object.fromEntries(Object.entries(agentSettings).filter(([agent]) => agents.includes(agent))),
    reference: references?.get(name),
    critic: critics?.get(name),
    kl: settings.kl,
    turns: (groups) => learntChains(name, groups),
  };
}
