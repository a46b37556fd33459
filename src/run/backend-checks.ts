import { needOf } from '../advantage/estimators/index.js';
import type { Capabilities } from '../contract/capabilities.js';
import { RecipeError } from '../core/errors.js';
import { type ModelSpec, wholeModel } from '../model/model-spec.js';
import type { Assignment } from '../recipe/assignment.js';
import { lossOf, lossPath } from '../recipe/policy-losses.js';
import type { Recipe } from '../recipe/recipe.js';

/** What a recipe is opened for: a run, or playing held-out tasks only. */
export type Purpose = 'training' | 'evaluation';

/**
 * Refuses what a recipe asks of a backend that cannot do it.
 * @throws RecipeError with the path of the value and the reason
 */
export function requireCapabilities(
  recipe: Recipe,
  assignment: Assignment,
  can: Capabilities,
  purpose: Purpose = 'training',
): void {
  const backend = `the backend '${recipe.backend.type}'`;
  const refuse = (path: string, reason: string): never => {
    throw new RecipeError(`${backend} ${reason}`, path);
  };
  const requireModel = (path: string, model: ModelSpec) => {
    if (wholeModel(model).type === 'tiny-decoder' && !can.randomModels)
      refuse(path, 'makes no models from a seed; expected a checkpoint');
    if (model.type === 'lora' && 'from' in model && !can.savedAdapters)
      refuse(`${path}.from`, 'reads no saved adapters; expected a rank');
  };
  for (const [policy, { model, optimizer, kl }] of Object.entries(recipe.policies)) {
    const path = `policies.${policy}.model`;
    if (!can.optimizers.includes(optimizer.type))
      refuse(`policies.${policy}.optimizer.type`, `has no '${optimizer.type}'; it has ${can.optimizers.join(', ')}`);
    if (model.type !== 'lora' && !can.fullParameters)
      refuse(path, `trains adapters only; expected lora(checkpoint(path), { rank }), got '${model.type}'`);
    if (kl?.reference.type === 'checkpoint' && !can.fullParameters)
      refuse(`policies.${policy}.kl.reference`, 'holds adapters only, no model of its own to stay near');
    if (kl !== undefined && kl.reference.type !== 'policy' && !can.references)
      refuse(`policies.${policy}.kl`, 'holds no model beside the policies for it to be held near');
    requireModel(path, model);
  }
  for (const { model, agents } of assignment.frozen) {
    const path = `assign.${agents[0]}.model`;
    if (model.type !== 'lora' && !can.fullParameters)
      refuse(path, `holds adapters only; expected lora(checkpoint(path), { rank }), got '${model.type}'`);
    requireModel(path, model);
  }
  for (const [agent, { sampling }] of purpose === 'training' ? Object.entries(recipe.agents) : [])
    if (typeof recipe.assign[agent] === 'string' && sampling.temperature !== 1 && !can.anyTemperature)
      refuse(`agents.${agent}.sampling.temperature`, `trains at temperature 1 only, got ${sampling.temperature}`);
  for (const [policy, { entropyCoefficient }] of Object.entries(recipe.policies)) {
    if (entropyCoefficient > 0 && !can.entropyBonus)
      refuse(`policies.${policy}.entropyCoefficient`, `has no entropy bonus, got ${entropyCoefficient}; expected 0`);
    const { type } = lossOf(recipe, policy);
    if (!can.losses.includes(type))
      refuse(`${lossPath(recipe, policy)}.type`, `has no '${type}'; it has ${can.losses.join(', ')}`);
  }
  if (needOf(recipe.advantage) === 'values' && !can.critic)
    refuse('advantage.type', `has no critic, which '${recipe.advantage.type}' needs`);
  if (recipe.training.measureInflation > 0 && !can.skipsUpdates)
    refuse('training.measureInflation', 'cannot take a gradient without an update');
  if (recipe.training.measureInflation > 0 && !can.skipsUpdates)
    refuse('training.measureInflation', 'tells no norm of the gradient of a single turn');
  if (recipe.training.spike.action === 'skip' && !can.skipsUpdates)
    refuse('training.spike.action', "learns a gradient's norm only after the update and cannot skip it");
}

/** What a recipe asks of a backend that will not do it, and that is no reason to refuse it. */
export function ignoredSettings({ policies }: Recipe, can: Capabilities): string[] {
  return Object.entries(policies).flatMap(([policy, { clipNorm }]) =>
    clipNorm > 0 && !can.clipsGradients
      ? [`policies.${policy}.clipNorm is ${clipNorm}, and the server is not known to clip gradients`]
      : [],
  );
}
