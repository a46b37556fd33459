import type { Backend, PolicyHandle, WeightsSpec } from '../../../engine/contract.js';
import { lossOf } from '../../recipe/policy-losses.js';
import type { Recipe } from '../../recipe/recipe.js';
import type { TrainedModel } from './learner.js';
import type { OpenRun } from './run-state.js';

/** The parts of a run that its trained models consist of. Policies are named as in the assignment. */
interface OpenedPolicies extends Pick<OpenRun, 'assignment' | 'backends' | 'weights'> {
  readonly policies: Readonly<Record<string, PolicyHandle>>;
}

/**
 * The models that a run trains, in the order of the assignment: the models that were opened as policies.
 * @param backendKeyOf A text that is equal for models on one backend
 */
export function trainedModels(
  recipe: Pick<Recipe, 'policies' | 'loss' | 'lists'>,
  { assignment, backends, weights, policies }: OpenedPolicies,
  backendKeyOf: (model: string) => string,
): TrainedModel[] {
  const settings: Readonly<Record<string, Recipe['policies'][string] | undefined>> = recipe.policies;
  return assignment.warmStarted.flatMap((assigned) => {
    const { name } = assigned;
    const handle = policies[name];
    if (handle === undefined) return [];
    return [
      {
        ...assigned,
        handle,
        backend: backends[name] as Backend,
        weights: weights[name] as WeightsSpec,
        settings: settings[name],
        loss: settings[name] && lossOf(recipe, name),
        learnsDemonstrations: assignment.demonstrationLearners.includes(assigned),
        backendKey: backendKeyOf(name),
      },
    ];
  });
}
