/** Who speaks for which agent: policies that train, models that do not, endpoints. */
import type { EndpointSpec } from '../backends/endpoint/endpoint-spec.js';
import { type ModelSpec, wholeModel } from '../model/model-spec.js';
import type { FrozenSpec } from './frozen.js';
import type { Recipe } from './recipe.js';

/** A model in the backend, by its name there. */
export interface Speaker {
  readonly name: string;
  readonly model: ModelSpec;
  readonly agents: readonly string[];
}

/** The policies that train. */
function trainedPolicies({ policies, assign }: Recipe): Speaker[] {
  return Object.entries(policies).map(([name, { model }]) => ({
    name,
    model,
    agents: Object.keys(assign).filter((agent) => assign[agent] === name),
  }));
}

/** The models that play and never train. Agents frozen on equal models share one, named like the first of them. */
export function frozenModels({ assign }: Recipe): Speaker[] {
  return shared(assign, (entry) => (entry.type === 'frozen' ? entry.model : undefined)).map(
    ({ name, spec, agents }) => ({ name, model: spec, agents }),
  );
}

interface Shared<Spec> {
  readonly name: string;
  readonly spec: Spec;
  readonly agents: string[];
}

/** Equal endpoints are one, so that the limit of requests holds for all of its agents together. */
export function frozenEndpoints({ assign }: Recipe): Shared<EndpointSpec>[] {
  return shared(assign, (entry) => (entry.type === 'endpoint' ? entry : undefined));
}

function shared<Spec>(assign: Recipe['assign'], pick: (entry: FrozenSpec) => Spec | undefined): Shared<Spec>[] {
  const found = new Map<string, Shared<Spec>>();
  for (const [agent, entry] of Object.entries(assign)) {
    const spec = typeof entry === 'string' ? undefined : pick(entry);
    if (spec === undefined) continue;
    const key = JSON.stringify(spec);
    const known = found.get(key);
    if (known === undefined) found.set(key, { name: agent, spec, agents: [agent] });
    else known.agents.push(agent);
  }
  return [...found.values()];
}

/**
 * What the warm start reaches: the policies that train, and frozen models that would otherwise say random things. A frozen
 * checkpoint is taken as it is.
 */
export function warmPolicies(recipe: Recipe): Speaker[] {
  return [...trainedPolicies(recipe), ...warmFrozen(recipe)];
}

/** The frozen models whose weights are nowhere but in the run, so that its checkpoints hold them. */
export function warmFrozen(recipe: Recipe): Speaker[] {
  if (recipe.warmStart === undefined) return [];
  return frozenModels(recipe).filter(({ model }) => wholeModel(model).type === 'tiny-decoder' && !('from' in model));
}

/** All models in the backend. */
export function allModels(recipe: Recipe): Speaker[] {
  return [...trainedPolicies(recipe), ...frozenModels(recipe)];
}

/** By agent: the name of what speaks for it, a policy's, a frozen model's or an endpoint's. */
export function speakers(recipe: Recipe): Readonly<Record<string, string>> {
  const all = [...allModels(recipe), ...frozenEndpoints(recipe)];
  return Object.fromEntries(all.flatMap(({ name, agents }) => agents.map((agent) => [agent, name])));
}
