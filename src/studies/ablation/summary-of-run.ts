import type { RunEvent } from '../../core/events.js';
import { trainingBudget } from '../../core/play/training-budget.js';
import type { Recipe } from '../../recipe/recipe.js';
import { type RunSummary, summariseRun } from '../../report/analysis/ablation-summary.js';
import type { PlannedRun } from './ablation-plan.js';

/** The summary of a run of an ablation, with what its training took where all of its policies are whole models. */
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
