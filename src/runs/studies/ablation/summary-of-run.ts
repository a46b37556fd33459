import type { RunEvent } from '../../../base/events.js';
import { trainingBudget } from '../../../base/host.js';
import type { Recipe } from '../../../method/recipe.js';
import { type RunSummary, summariseRun } from '../../analysis/ablation-summary.js';
import type { PlannedRun } from './ablation-plan.js';

/** The summary of an ablation's run. It includes the training budget if all policies are whole models. */
export function summaryOf(
  planned: PlannedRun & { readonly recipe: Recipe },
  events: readonly RunEvent[],
  failure?: string,
): RunSummary {
  const { assign, policies } = planned.recipe;
  const whole = Object.entries(assign).flatMap(([agent, policy]) =>
    typeof policy === 'string' && policies[policy]?.model.type !== 'lora' ? [[agent, policy] as const] : [],
  );
  const budget = trainingBudget(events, Object.fromEntries(whole));
  return { ...summariseRun(planned, events, failure), ...(budget === undefined ? {} : { budget }) };
}
