import { declarationOf, type Estimator, estimators } from '../advantage/estimators/index.js';
import { RecipeError } from '../core/errors.js';
import type { LossSpec } from '../loss/loss-spec.js';
import type { RecipeSettings } from './recipe-schema.js';

/** The loss of a policy: its own, or the recipe's. */
export function lossOf({ loss, policies }: Pick<RecipeSettings, 'loss' | 'policies'>, policy: string): LossSpec {
  return policies[policy]?.loss ?? loss;
}

/** Where the loss of a policy stands in the recipe. */
export function lossPath({ policies }: Pick<RecipeSettings, 'policies'>, policy: string): string {
  return policies[policy]?.loss === undefined ? 'loss' : `policies.${policy}.loss`;
}

const weighsDemonstrations = (estimator: Pick<Estimator, 'type'>) =>
  declarationOf(estimator).traits.weighsDemonstrations === true;
const weighing = estimators.filter(weighsDemonstrations).map(({ type }) => type);

/**
 * Refuses losses that do not go with the estimator.
 * @throws RecipeError with the path of the value and the reason
 */
export function checkLosses(settings: Pick<RecipeSettings, 'loss' | 'policies' | 'advantage'>): void {
  for (const policy of Object.keys(settings.policies)) {
    if (lossOf(settings, policy).type !== 'cross-entropy' || weighsDemonstrations(settings.advantage)) continue;
    const reason = `weighs samples by their advantage, and '${settings.advantage.type}' has negative ones`;
    const expected = `expected advantage.type '${weighing.join("' or '")}', or another loss`;
    throw new RecipeError(`'cross-entropy' ${reason}; ${expected}`, `${lossPath(settings, policy)}.type`);
  }
}
