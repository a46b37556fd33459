/** The checks that ask backends: each model's, of what the recipe wants of that model. */
import { needOf } from '../../advantage/estimators/index.js';
import type { Capabilities } from '../../contract/capabilities.js';
import type { WeightsSpec } from '../../contract/weights-spec.js';
import { type ModelSpec, wholeModel } from '../../model/model-spec.js';
import type { Assignment } from '../../recipe/assignment.js';
import { lossOf, lossPath } from '../../recipe/policy-losses.js';
import { backendText, type Recipe } from '../../recipe/recipe.js';
import { stalenessOf } from '../../training/step/rollouts-ahead.js';
import { type Check, type Checks, requireAll } from './check.js';

/** The purpose of opening a recipe: a run, or playing held-out tasks only. */
export type Purpose = 'training' | 'evaluation';

/** What the backend of a model can do, by the model's name. */
export type CapabilitiesOf = (model: string) => Capabilities;

/** @throws RecipeError with the path of the first value that a backend cannot do */
export function checkBackends(
  recipe: Recipe,
  assignment: Assignment,
  canOf: CapabilitiesOf,
  purpose: Purpose = 'training',
): void {
  const policies = Object.keys(recipe.policies);
  for (const policy of policies) requireAll(policyChecks(recipe, policy, canOf(policy)));
  for (const { name, model, agents } of assignment.frozen)
    requireAll(modelChecks(checkOf(recipe, name), canOf(name), 'frozen', `assign.${agents[0]}.model`, model));
  if (purpose === 'training') requireAll(samplingChecks(recipe, canOf));
  if (purpose === 'training') requireAll(versionChecks(recipe, canOf));
  for (const policy of policies) requireAll(lossChecks(recipe, policy, canOf(policy)));
  for (const policy of policies) requireAll(runChecks(recipe, policy, canOf(policy)));
}

type CheckOf = (path: string, test: boolean, reason: string) => Check;

/** Checks whose messages name the backend of a model. */
const checkOf =
  (recipe: Recipe, model: string): CheckOf =>
  (path, test, reason) => ({ path, test, message: `the backend ${backendText(recipe, model)} ${reason}` });

function* policyChecks(recipe: Recipe, policy: string, can: Capabilities): Checks {
  const check = checkOf(recipe, policy);
  const path = `policies.${policy}`;
  const { model, precision, optimizer, kl } = recipe.policies[policy] as Recipe['policies'][string];
  yield check(
    `${path}.precision`,
    can.precisions.includes(precision),
    `cannot be asked for '${precision}' products; it has ${can.precisions.join(', ')}`,
  );
  yield {
    path: `${path}.backend`,
    test: model.type !== 'choice-table' || recipe.policies[policy]?.backend === undefined,
    message: 'a table of choices is held here, whatever holds the others: expected none',
  };
  const { type } = optimizer;
  yield check(
    `${path}.optimizer.type`,
    can.optimizers.includes(type),
    `has no '${type}'; it has ${can.optimizers.join(', ')}`,
  );
  yield* modelChecks(check, can, 'policy', `${path}.model`, model);
  yield check(
    `${path}.kl.reference`,
    kl?.reference.type !== 'checkpoint' || can.roles.frozen.includes('directory'),
    'holds adapters only, no model of its own to stay near',
  );
}

function* modelChecks(
  check: CheckOf,
  can: Capabilities,
  role: 'policy' | 'frozen',
  path: string,
  model: ModelSpec,
): Checks {
  const weights = can.roles[role];
  const wholes: readonly WeightsSpec['type'][] = model.type === 'lora' ? can.bases : weights;
  yield check(
    path,
    model.type === 'lora' || weights.includes('random') || weights.includes('directory'),
    `${role === 'policy' ? 'trains' : 'holds'} adapters only; expected lora(checkpoint(path), { rank }), got '${model.type}'`,
  );
  yield check(
    path,
    model.type !== 'choice-table' || weights.includes('table'),
    'holds language models; a table of choices is a policy, which trains',
  );
  yield check(
    path,
    wholeModel(model).type !== 'tiny-decoder' || wholes.includes('random'),
    'makes no models from a seed; expected a checkpoint',
  );
  yield check(
    `${path}.from`,
    !(model.type === 'lora' && 'from' in model) || weights.includes('saved-adapter'),
    'reads no saved adapters; expected a rank',
  );
}

function* samplingChecks(recipe: Recipe, canOf: CapabilitiesOf): Checks {
  for (const [agent, { sampling }] of Object.entries(recipe.agents)) {
    const policy = recipe.assign[agent];
    if (typeof policy !== 'string') continue;
    yield checkOf(recipe, policy)(
      `agents.${agent}.sampling.temperature`,
      sampling.temperature === 1 || canOf(policy).distribution === 'whole',
      `trains at temperature 1 only, got ${sampling.temperature}`,
    );
  }
}

/** Rollouts that begin ahead are played by the weights of that time. */
function* versionChecks(recipe: Recipe, canOf: CapabilitiesOf): Checks {
  for (const policy of Object.keys(recipe.policies))
    yield checkOf(recipe, policy)(
      'rollout.staleness',
      stalenessOf(recipe) === 0 || canOf(policy).keepsVersions,
      'plays the last published weights only; expected 0',
    );
}

function* lossChecks(recipe: Recipe, policy: string, can: Capabilities): Checks {
  const check = checkOf(recipe, policy);
  const entropyCoefficient = recipe.policies[policy]?.entropyCoefficient ?? 0;
  yield check(
    `policies.${policy}.entropyCoefficient`,
    entropyCoefficient === 0 || can.distribution === 'whole',
    `has no entropy bonus, got ${entropyCoefficient}; expected 0`,
  );
  const { type } = lossOf(recipe, policy);
  yield check(
    `${lossPath(recipe, policy)}.type`,
    can.losses.includes(type),
    `has no '${type}'; it has ${can.losses.join(', ')}`,
  );
}

/** What the recipe wants of every policy. */
function* runChecks(recipe: Recipe, policy: string, can: Capabilities): Checks {
  const check = checkOf(recipe, policy);
  const { advantage, training } = recipe;
  yield check(
    'advantage.type',
    needOf(advantage) !== 'values' || can.roles.critic.length > 0,
    `has no critic, which '${advantage.type}' needs`,
  );
  yield check(
    'training.measureInflation',
    training.measureInflation === 0 || can.gradientNorms === 'before-update',
    'cannot take a gradient without an update',
  );
  yield check(
    'training.spike.action',
    training.spike.action !== 'skip' || can.gradientNorms === 'before-update',
    "learns a gradient's norm only after the update and cannot skip it",
  );
}
