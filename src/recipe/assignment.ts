/** Who speaks for which agent: policies that train, frozen models, endpoints. */
import type { EndpointSpec } from '../backends/endpoint/endpoint-spec.js';
import { type ModelSpec, wholeModel } from '../model/model-spec.js';
import type { FrozenSpec } from './frozen.js';
import type { Recipe } from './recipe.js';

/** A model in the backend, by its name there, with the agents that it speaks for. */
export interface Speaker {
  readonly name: string;
  readonly model: ModelSpec;
  readonly agents: readonly string[];
}

/**
 * An endpoint in a policy's place. Equal endpoints are one, so that the limit of requests holds for all agents
 * together.
 */
export interface EndpointSpeaker {
  readonly name: string;
  readonly endpoint: EndpointSpec;
  readonly agents: readonly string[];
}

export interface Assignment {
  /** The policies that train, in the order of the recipe. */
  readonly trained: readonly Speaker[];
  /**
   * The models that play and never train. Agents that are frozen on equal models share one, named like the first agent.
   */
  readonly frozen: readonly Speaker[];
  readonly endpoints: readonly EndpointSpeaker[];
  /** Every model in the backend: `trained`, then `frozen`. */
  readonly models: readonly Speaker[];
  /**
   * The models that training begins with: the policies, and frozen models that would otherwise say random things. A
   * frozen checkpoint plays as it is.
   */
  readonly warmStarted: readonly Speaker[];
  /** Those that learn from demonstrations: tables of choices begin undecided. */
  readonly taught: readonly Speaker[];
  /** The frozen models of `warmStarted`. Their weights are nowhere but in the run: its checkpoints hold them. */
  readonly warmStartedFrozen: readonly Speaker[];
  /** The name of the model or endpoint that speaks for each agent. */
  readonly speakerOf: Readonly<Record<string, string>>;
}

export function assignmentOf({ assign, policies, warmStart }: Recipe): Assignment {
  const trained = Object.entries(policies).map(([name, { model }]) => ({
    name,
    model,
    agents: Object.keys(assign).filter((agent) => assign[agent] === name),
  }));
  const frozen = grouped(assign, (entry) => (entry.type === 'frozen' ? entry.model : undefined)).map(
    ({ name, spec, agents }) => ({ name, model: spec, agents }),
  );
  const endpoints = grouped(assign, (entry) => (entry.type === 'endpoint' ? entry : undefined)).map(
    ({ name, spec, agents }) => ({ name, endpoint: spec, agents }),
  );
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
    taught: [...trained, ...warmStartedFrozen].filter(({ model }) => model.type !== 'choice-table'),
    warmStartedFrozen,
    speakerOf,
  };
}

interface Group<Spec> {
  /** The first of the agents. */
  readonly name: string;
  readonly spec: Spec;
  readonly agents: string[];
}

/** The agents by equal specifications, in the order of the assignment. */
function grouped<Spec>(assign: Recipe['assign'], specOf: (entry: FrozenSpec) => Spec | undefined): Group<Spec>[] {
  const groups = new Map<string, Group<Spec>>();
  for (const [agent, entry] of Object.entries(assign)) {
    const spec = typeof entry === 'string' ? undefined : specOf(entry);
    if (spec === undefined) continue;
    const key = JSON.stringify(spec);
    const group = groups.get(key);
    if (group === undefined) groups.set(key, { name: agent, spec, agents: [agent] });
    else group.agents.push(agent);
  }
  return [...groups.values()];
}
