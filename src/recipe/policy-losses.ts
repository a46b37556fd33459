import { declarationOf, type Estimator, estimators } from '../advantage/estimators/index.js';
import { RecipeError } from '../core/errors.js';
import { type LossSpec, lossDeclaration } from '../loss/loss-spec.js';
import type { RecipeSettings } from './recipe-schema.js';

/** The loss of a policy: the one it names, or the recipe's. */
export function lossOf({ loss, policies }: Pick<RecipeSettings, 'loss' | 'policies'>, policy: string): LossSpec {
  return policies[policy]?.loss ?? loss;
}

/** The path of a policy's loss in the recipe. */
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
    const { type } = lossOf(settings, policy);
    if (lossDeclaration(type).selects !== true || weighsDemonstrations(settings.advantage)) continue;
    const reason = `weighs samples by their advantage, and '${settings.advantage.type}' has negative ones`;
    const expected = `expected advantage.type '${weighing.join("' or '")}', or another loss`;
    throw new RecipeError(`'${type}' ${reason}; ${expected}`, `${lossPath(settings, policy)}.type`);
  }
}
