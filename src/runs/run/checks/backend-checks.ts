/** The checks of a recipe against the capabilities of its backends, model by model. */
import type { Capabilities, WeightsSpec } from '../../../engine/contract.js';
import { type ModelSpec, wholeModel } from '../../../engine/model.js';
import type { Requirement } from '../../../method/index.js';
import { stalenessOf, wantedSignals } from '../../../method/index.js';
import type { Assignment } from '../../../method/recipe.js';
import { backendText, estimatorOf, lossPath, lossSettings, type Recipe } from '../../../method/recipe.js';
import { type Checks, requireAll } from './check.js';

/** The purpose of opening a recipe: a run, or playing held-out tasks only. */
export type Purpose = 'training' | 'evaluation';

/** The capabilities of a model's backend, by the model's name. */
export type CapabilitiesOf = (model: string) => Capabilities;

/** @throws RecipeError with the path of the first value that a backend does not support */
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

type CheckOf = (path: string, test: boolean, reason: string) => Requirement;

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
    `has no '${precision}' products; it has ${can.precisions.join(', ')}`,
  );
  yield {
    path: `${path}.backend`,
    test: model.type !== 'choice-table' || recipe.policies[policy]?.backend === undefined,
    message: 'a table of choices needs no backend: expected none',
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
    'holds adapters only, so it cannot hold a reference model',
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
    'holds language models; a table of choices must be a trained policy',
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

/** Rollouts that start ahead are played by the weights of that time. */
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
  const { type } = lossSettings(recipe, policy);
  // Every backend takes the losses of plug-ins.
  const isPlugin = recipe.lists.ownLosses.some(({ declaration }) => declaration.type === type);
  yield check(
    `${lossPath(recipe, policy)}.type`,
    isPlugin || can.losses.includes(type),
    `has no '${type}'; it has ${can.losses.join(', ')}`,
  );
}

/** The requirements of a recipe for every policy. */
function* runChecks(recipe: Recipe, policy: string, can: Capabilities): Checks {
  const check = checkOf(recipe, policy);
  const { advantage, policies, training } = recipe;
  const wanted = wantedSignals({ estimator: estimatorOf(recipe), policies });
  for (const { backend } of wanted)
    if (backend !== undefined)
      yield check('advantage.type', backend.has(can), `has no ${backend.what}, which '${advantage.type}' needs`);
  yield check(
    'training.measureInflation',
    training.measureInflation === 0 || can.gradientNorms === 'before-update',
    'cannot take a gradient without an update',
  );
  yield check(
    'training.spike.action',
    training.spike.action !== 'skip' || can.gradientNorms === 'before-update',
    "reports a gradient's norm only after the update and cannot skip the update",
  );
}
