/** The checks of a recipe against the capabilities of its backends, model by model. */

import { type Capabilities, isTorchDevice, type WeightsSpec } from '@drmas/engine/contract';
import { RecipeError } from '@drmas/engine/errors';
import type { LossSpec } from '@drmas/engine/loss';
import { kindOfType, type ModelSpec, wholeModel } from '@drmas/engine/model';
import { type Requirement, type Signal, stalenessOf, wantedSignals } from '../../../method/index.js';
import {
  type Assignment,
  backendOfModel,
  backendText,
  lossPath,
  lossSettings,
  type Recipe,
} from '../../../method/recipe.js';

export type Checks = Generator<Requirement, void>;

/** @throws RecipeError with the path of the first value that is wrong */
export function requireAll(checks: Checks): void {
  for (const { path, test, message } of checks) if (!test) throw new RecipeError(message, path);
}

/** The purpose of opening a recipe: a run, or playing held-out tasks only. */
export type Purpose = 'training' | 'evaluation';

/** The purpose of a study of a recipe: only playing, if all of its agents are frozen. */
export const purposeOf = ({ policies }: Pick<Recipe, 'policies'>): Purpose =>
  Object.keys(policies).length === 0 ? 'evaluation' : 'training';

export type CapabilitiesOf = (model: string) => Capabilities;

/** @throws RecipeError with the path of the first value that a backend does not support */
export function checkBackends(
  recipe: Recipe,
  { frozen }: Pick<Assignment, 'frozen'>,
  canOf: CapabilitiesOf,
  purpose: Purpose = 'training',
): void {
  const { advantage, training, agents, assign } = recipe;
  const checkOf = (model: string): Check => {
    const backend = backendText(recipe, model);
    return (path, test, reason) => ({ path, test, message: `the backend ${backend} ${reason}` });
  };
  const policies = new Map(
    Object.entries(recipe.policies).map(([name, settings]): [string, CheckedPolicy] => [
      name,
      { name, settings, can: canOf(name), check: checkOf(name) },
    ]),
  );
  for (const policy of policies.values()) {
    const { type, ...backend } = backendOfModel(recipe, policy.name);
    const device = type === 'embedded' && 'device' in backend ? String(backend.device) : undefined;
    const played = Object.keys(assign).filter((agent) => assign[agent] === policy.name);
    requireAll(policyChecks(policy, device, played));
  }
  for (const { name, agents } of frozen) {
    const entry = assign[name];
    const placed = typeof entry === 'object' && entry.type === 'frozen' && entry.device !== undefined;
    requireAll(deviceChecks(recipe, name, `assign.${agents[0]}.device`, placed));
  }
  for (const { name, settings } of policies.values())
    requireAll(deviceChecks(recipe, name, `policies.${name}.device`, settings.device !== undefined));
  for (const { name, model, agents } of frozen)
    requireAll(modelChecks(checkOf(name), canOf(name), 'frozen', `assign.${agents[0]}.model`, model));
  if (purpose === 'training') {
    const policyOf = (agent: string) => {
      const assigned = assign[agent];
      return typeof assigned === 'string' ? policies.get(assigned) : undefined;
    };
    requireAll(samplingChecks(agents, policyOf));
    for (const policy of policies.values()) requireAll(versionChecks(policy, stalenessOf(recipe.rollout)));
  }
  const plugins = recipe.lists.ownLosses.map(({ declaration }) => declaration.type);
  for (const policy of policies.values()) {
    const loss = { path: lossPath(recipe, policy.name), type: lossSettings(recipe, policy.name).type };
    requireAll(lossChecks(policy, loss, plugins));
  }
  const needs = wantedSignals(recipe).flatMap(({ backend }) => backend ?? []);
  for (const policy of policies.values()) requireAll(runChecks(policy, advantage.type, needs, training));
}

type Check = (path: string, test: boolean, reason: string) => Requirement;

interface CheckedPolicy {
  readonly name: string;
  readonly settings: Recipe['policies'][string];
  readonly can: Capabilities;
  readonly check: Check;
}

/** A trunk that is trained with an adapter for each agent. Only the embedded engine has it, on the processor. */
function* agentAdapterChecks(
  { name, settings: { model, critic }, can, check }: CheckedPolicy,
  onGpu: boolean,
  agents: readonly string[],
): Checks {
  const path = `policies.${name}.agentAdapters`;
  yield check(path, can.agentAdapters, 'trains no adapters of agents together with their trunk; expected none');
  yield check(path, !onGpu, 'trains adapters of agents on the processor and on PyTorch only; expected none on `gpu`');
  yield {
    path,
    test: model.type === 'tiny-decoder' || model.type === 'checkpoint',
    message: `need a whole model that is trained with them: expected tinyDecoder(...) or checkpoint(path), got '${model.type}'`,
  };
  yield { path, test: critic === undefined, message: 'there are no critics for agents with adapters: expected none' };
  const odd = agents.find((agent) => !/^[A-Za-z0-9][A-Za-z0-9_-]*$/.test(agent));
  yield {
    path,
    test: odd === undefined,
    message: `the agent '${odd}' names a directory: expected letters, digits, '-' and '_'`,
  };
}

/** Only the engine of this package computes on a device that a model can choose. */
function* deviceChecks(recipe: Recipe, name: string, path: string, placed: boolean): Checks {
  const { type } = backendOfModel(recipe, name);
  yield {
    path,
    test: !placed || type === 'embedded',
    message: `the backend '${type}' places no model on a device of its choice; expected none`,
  };
}

function* policyChecks(
  { name, settings, can, check }: CheckedPolicy,
  device: string | undefined,
  agents: readonly string[],
): Checks {
  const path = `policies.${name}`;
  const kind = kindOfType(settings.model.type);
  const { model, precision, optimizer, kl, backend } = settings;
  yield check(
    `${path}.precision`,
    precision === undefined || can.precisions.includes(precision),
    `has no '${precision}' products; it has ${can.precisions.join(', ')}`,
  );
  yield {
    path: `${path}.precision`,
    test: precision !== 'int8' || model.type === 'lora',
    message: `'int8' is for adapters: expected lora(checkpoint('model.gguf'), { rank }), got '${model.type}'`,
  };
  yield check(
    `${path}.precision`,
    precision !== 'int8' || !isTorchDevice(device),
    "has no 'int8' products on PyTorch; it has float32, bfloat16",
  );
  yield {
    path: `${path}.backend`,
    test: kind === undefined || backend === undefined,
    message: `${kind?.noun} needs no backend: expected none`,
  };
  const { type } = optimizer;
  yield check(
    `${path}.optimizer.type`,
    can.optimizers.includes(type),
    `has no '${type}'; it has ${can.optimizers.join(', ')}`,
  );
  yield* modelChecks(check, can, 'policy', `${path}.model`, model);
  if (settings.agentAdapters !== undefined)
    yield* agentAdapterChecks({ name, settings, can, check }, device === 'gpu', agents);
  yield check(
    `${path}.kl.reference`,
    kl?.reference.type !== 'checkpoint' || can.roles.frozen.includes('directory'),
    'holds adapters only, so it cannot hold a reference model',
  );
}

function* modelChecks(
  check: Check,
  can: Capabilities,
  role: 'policy' | 'frozen',
  path: string,
  model: ModelSpec,
): Checks {
  const weights = can.roles[role];
  const kind = kindOfType(model.type);
  const wholes: readonly WeightsSpec['type'][] = model.type === 'lora' ? can.bases : weights;
  yield check(
    path,
    model.type === 'lora' || weights.includes('random') || weights.includes('directory'),
    `${role === 'policy' ? 'trains' : 'holds'} adapters only; expected lora(checkpoint(path), { rank }), got '${model.type}'`,
  );
  yield check(
    path,
    kind === undefined || weights.includes('of-kind'),
    `holds language models; ${kind?.noun} must be a trained policy`,
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

function* samplingChecks(agents: Recipe['agents'], policyOf: (agent: string) => CheckedPolicy | undefined): Checks {
  for (const [agent, { sampling }] of Object.entries(agents)) {
    const policy = policyOf(agent);
    if (policy === undefined) continue;
    yield policy.check(
      `agents.${agent}.sampling.temperature`,
      sampling.temperature === 1 || policy.can.distribution === 'whole',
      `trains at temperature 1 only, got ${sampling.temperature}`,
    );
  }
}

/** Rollouts that start ahead are played by the weights of that time. */
function* versionChecks({ can, check }: CheckedPolicy, staleness: number): Checks {
  yield check(
    'rollout.staleness',
    staleness === 0 || can.keepsVersions,
    'plays the last published weights only; expected 0',
  );
}

/** Every backend takes the losses of plug-ins. */
function* lossChecks(
  { name, settings: { entropyCoefficient, entropySchedule }, can, check }: CheckedPolicy,
  loss: { readonly path: string; readonly type: LossSpec['type'] },
  plugins: readonly string[],
): Checks {
  yield check(
    `policies.${name}.entropyCoefficient`,
    entropyCoefficient === 0 || can.distribution === 'whole',
    `has no entropy bonus, got ${entropyCoefficient}; expected 0`,
  );
  yield {
    path: `policies.${name}.entropySchedule`,
    test: entropySchedule === undefined || entropyCoefficient > 0,
    message: 'there is no entropy bonus to schedule: expected an entropyCoefficient above 0',
  };
  yield check(
    `${loss.path}.type`,
    plugins.includes(loss.type) || can.losses.includes(loss.type),
    `has no '${loss.type}'; it has ${can.losses.join(', ')}`,
  );
}

function* runChecks(
  { can, check }: CheckedPolicy,
  estimator: string,
  needs: readonly NonNullable<Signal['backend']>[],
  { measureInflation, spike }: Recipe['training'],
): Checks {
  for (const need of needs)
    yield check('advantage.type', need.has(can), `has no ${need.what}, which '${estimator}' needs`);
  yield check(
    'training.measureInflation',
    measureInflation === 0 || can.gradientNorms === 'before-update',
    'cannot take a gradient without an update',
  );
  yield check(
    'training.spike.action',
    spike.action !== 'skip' || can.gradientNorms === 'before-update',
    "reports a gradient's norm only after the update and cannot skip the update",
  );
}
