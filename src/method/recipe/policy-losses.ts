import { RecipeError } from '@drmas/engine/errors';
import { type AnyLoss, type LossSpec, lossNamed } from '@drmas/engine/loss';
import { declarationOf } from '../advantage/estimators/index.js';
import type { Lists } from './lists.js';
import type { Recipe } from './recipe.js';
import type { RecipeSettings } from './recipe-schema.js';

export function lossSettings({ loss, policies }: Pick<RecipeSettings, 'loss' | 'policies'>, policy: string): LossSpec {
  return policies[policy]?.loss ?? loss;
}

export function lossOf(recipe: Pick<Recipe, 'loss' | 'policies' | 'lists'>, policy: string): AnyLoss {
  return lossNamed(lossSettings(recipe, policy), recipe.lists.ownLosses);
}

export function lossPath({ policies }: Pick<RecipeSettings, 'policies'>, policy: string): string {
  return policies[policy]?.loss === undefined ? 'loss' : `policies.${policy}.loss`;
}

/**
 * Refuses losses that do not fit the estimator.
 * @throws RecipeError with the path of the value and the reason
 */
export function checkLosses(
  settings: Pick<RecipeSettings, 'loss' | 'policies' | 'advantage'>,
  { estimators, losses }: Pick<Lists, 'estimators' | 'losses'>,
): void {
  const weighs = declarationOf(settings.advantage, estimators).traits.weighsDemonstrations === true;
  for (const [policy, { kl }] of Object.entries(settings.policies)) {
    const { type } = lossSettings(settings, policy);
    if (losses.find((loss) => loss.type === type)?.weighsDemonstrations !== true) continue;
    if (kl?.in === 'advantage')
      throw new RecipeError(
        `'${type}' weighs samples by their advantage, and the KL makes some negative; expected 'loss', or another loss`,
        `policies.${policy}.kl.in`,
      );
    if (weighs) continue;
    const weighing = estimators.flatMap(({ type, traits }) => (traits.weighsDemonstrations ? [type] : []));
    const reason = `takes advantages for weights of demonstrations, which those of '${settings.advantage.type}' are not`;
    const expected = `expected advantage.type '${weighing.join("' or '")}', or another loss`;
    throw new RecipeError(`'${type}' ${reason}; ${expected}`, `${lossPath(settings, policy)}.type`);
  }
}
