import type { Backend, OwnWeights, PolicyHandle, WeightsSpec } from '@drmas/engine/contract';
import { isOtherModel, type ModelSpec, wholeModel, wholeWeights } from '@drmas/engine/model';
import type { Assignment } from '../../recipe/assignment.js';
import { lossOf } from '../../recipe/policy-losses.js';
import { inPrecisionOf, type Recipe, withAgentAdapters } from '../../recipe/recipe.js';
import type { TrainedModel } from './learner.js';
import type { OpenRun } from './run-state.js';

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

/** The first weights of every model, by its name. `requested` has the model names that the user typed. */
export function firstWeights(
  recipe: Recipe,
  { models }: Assignment,
  requested: Assignment,
): Readonly<Record<string, WeightsSpec>> {
  const written = new Map(requested.models.map(({ name, model }) => [name, wholeModel(model)]));
  const { policies, warmStart, seed } = recipe;
  const first = warmStart?.seed ?? seed;
  return Object.fromEntries(
    models.map((assigned, index) => {
      const { name, model } = assigned;
      const whole = written.get(name);
      const called = whole?.type === 'checkpoint' ? whole.path : undefined;
      // Policies that share a warm start begin with equal weights. Policies with a warm start each begin with different
      // ones. The seeds are far apart, so that runs with neighbouring seeds have no first weights in common.
      const seedOfModel = warmStart?.share === 'policy' ? first + index * 1000 : first;
      const weights = inPrecisionOf(policies, name, modelWeights(model, { first, seedOfModel }, called));
      return [name, withAgentAdapters(policies, assigned, weights, seedOfModel)];
    }),
  );
}

interface Seeds {
  readonly first: number;
  readonly seedOfModel: number;
}

function modelWeights(model: ModelSpec, { first, seedOfModel }: Seeds, called: string | undefined): OwnWeights {
  if (isOtherModel(model)) return { type: 'of-kind', model };
  if (model.type !== 'lora') return wholeWeights(model, seedOfModel, called);
  if ('from' in model)
    return { type: 'saved-adapter', base: wholeWeights(model.base, first, called), directory: model.from };
  const { base, rank, alpha, targets } = model;
  const adapter = { rank, alpha, targets };
  return { type: 'adapter', base: wholeWeights(base, first, called), adapter, seed: seedOfModel };
}
