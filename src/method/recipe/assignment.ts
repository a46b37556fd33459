/** The model of each agent: a policy that trains, a frozen model or an endpoint. */

import type { CompleteText, EndpointSpec, TextModelSpec } from '@drmas/engine/endpoints';
import { isOtherModel, type ModelSpec, wholeModel } from '@drmas/engine/model';
import type { FrozenSpec } from './frozen.js';
import type { Recipe } from './recipe.js';

export interface AssignedModel {
  readonly name: string;
  readonly model: ModelSpec;
  readonly agents: readonly string[];
}

/**
 * An endpoint or a function instead of a policy. Equal ones are one, so all agents of an endpoint share its limit of
 * requests.
 */
export interface AssignedEndpoint {
  readonly name: string;
  readonly endpoint: EndpointSpec | FunctionSpec;
  readonly agents: readonly string[];
}

export interface FunctionSpec extends TextModelSpec {
  readonly complete: CompleteText;
  readonly constant?: string;
}

export interface Assignment {
  readonly trained: readonly AssignedModel[];
  /**
   * The models that play and never train. Agents with equal frozen models share one model, named like the first agent.
   */
  readonly frozen: readonly AssignedModel[];
  readonly endpoints: readonly AssignedEndpoint[];
  /** Every model in the backend: `trained`, then `frozen`. */
  readonly models: readonly AssignedModel[];
  /**
   * The models that the warm start trains: the policies, and frozen models with random weights. A frozen checkpoint
   * keeps its weights.
   */
  readonly warmStarted: readonly AssignedModel[];
  /** The models of `warmStarted` that learn from demonstrations. Tables of choices start uniform. */
  readonly demonstrationLearners: readonly AssignedModel[];
  /**
   * The frozen models of `warmStarted`. The run's checkpoints hold their weights, because they are stored nowhere else.
   */
  readonly warmStartedFrozen: readonly AssignedModel[];
  /** The name of the model or endpoint of each agent. */
  readonly speakerOf: Readonly<Record<string, string>>;
}

export function assignmentOf({ assign, policies, warmStart, functions = {} }: Recipe): Assignment {
  const trained = Object.entries(policies).map(([name, { model }]) => ({
    name,
    model,
    agents: Object.keys(assign).filter((agent) => assign[agent] === name),
  }));
  const frozen = grouped(assign, (entry) => (entry.type === 'frozen' ? entry : undefined)).map(
    ({ name, spec, agents }) => ({ name, model: spec.model, agents }),
  );
  const ofServers = grouped(assign, (entry) => (entry.type === 'endpoint' ? entry : undefined));
  const known = [...new Set(Object.values(functions))];
  // The place of the function in this list tells functions with equal settings apart.
  const ofFunctions = grouped(assign, (entry, agent) =>
    entry.type === 'text' ? { ...entry, place: known.indexOf(functions[agent] as CompleteText) } : undefined,
  ).map(({ spec: { place, ...settings }, ...group }) => ({
    ...group,
    spec: { ...settings, complete: known[place] as CompleteText },
  }));
  const constants = grouped(assign, (entry) => (entry.type === 'constant' ? entry : undefined)).map(
    ({ spec: { text }, ...group }) => ({ ...group, spec: constantSpec(text) }),
  );
  const endpoints = [...ofServers, ...ofFunctions, ...constants].map(({ name, spec, agents }) => ({
    name,
    endpoint: spec,
    agents,
  }));
  const models = [...trained, ...frozen];
  const random = frozen.filter(({ model }) => wholeModel(model).type === 'tiny-decoder' && !('from' in model));
  const warmStartedFrozen = warmStart === undefined ? [] : random;
  const speakerOf = Object.fromEntries(
    [...models, ...endpoints].flatMap(({ name, agents }) => agents.map((agent) => [agent, name])),
  );
  return {
    trained,
    frozen,
    endpoints,
    models,
    warmStarted: [...trained, ...warmStartedFrozen],
    demonstrationLearners: [...trained, ...warmStartedFrozen].filter(({ model }) => !isOtherModel(model)),
    warmStartedFrozen,
    speakerOf,
  };
}

const constantSpec = (constant: string): FunctionSpec => ({
  type: 'text',
  name: `the text ${JSON.stringify(constant)}`,
  concurrency: Number.MAX_SAFE_INTEGER,
  constant,
  complete: () => ({ text: constant, promptTokens: 0, responseTokens: 0 }),
});

interface AgentGroup<Spec> {
  readonly name: string;
  readonly spec: Spec;
  readonly agents: string[];
}

/** The agents by equal specifications, in the order of the assignment. */
function grouped<Spec>(
  assign: Recipe['assign'],
  specOf: (entry: FrozenSpec, agent: string) => Spec | undefined,
): AgentGroup<Spec>[] {
  const groups = new Map<string, AgentGroup<Spec>>();
  for (const [agent, entry] of Object.entries(assign)) {
    const spec = typeof entry === 'string' ? undefined : specOf(entry, agent);
    if (spec === undefined) continue;
    const key = JSON.stringify(spec);
    const group = groups.get(key);
    if (group === undefined) groups.set(key, { name: agent, spec, agents: [agent] });
    else group.agents.push(agent);
  }
  return [...groups.values()];
}
