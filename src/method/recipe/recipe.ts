import type { BackendDeclaration } from '@drmas/engine/backends';
import type { AdapterSettings, OwnWeights, Sampling } from '@drmas/engine/contract';
import type { CompleteText, SamplerSpec } from '@drmas/engine/endpoints';
import type { EventSink, Price } from '@drmas/engine/host';
import { type AgentProfile, isOtherModel, modelKindOf } from '@drmas/engine/model';
import type { TaskSource } from '@drmas/engine/nouns';
import type { Team } from '../../teams/index.js';
import type { OpenEstimator } from '../advantage/define-estimator.js';
import type { BackendSpec } from './backend-spec.js';
import { type Lists, typeOf } from './lists.js';
import type { RecipeSettings } from './recipe-schema.js';

/** A resolved recipe: all defaults are filled in and all values checked. recipe.json holds its plain part. */
export interface Recipe extends Readonly<RecipeSettings> {
  readonly team: Team;
  readonly tasks: { readonly train: TaskSource; readonly test: TaskSource };
  /** The place of its code; absent if a program defined the recipe. */
  readonly code?: RecipeCode | undefined;
  /**
   * The lists that the recipe chooses from: the standard ones with its plug-ins.
   * @internal
   */
  readonly lists: Lists;
  /**
   * The estimator that `advantage` chooses, open.
   * @internal
   */
  readonly estimator: OpenEstimator;
  /** Receivers of the run's events. */
  readonly sinks?: readonly EventSink[];
  /** The functions of frozen agents whose entry in `assign` is of type `text`, by the agent. */
  readonly functions?: Readonly<Record<string, CompleteText>>;
}

/** The place of a recipe's code, to load it again. */
export interface RecipeCode {
  /** A shipped recipe's name, or an absolute path. */
  readonly source: string;
  readonly codeHash: string;
}

/**
 * The backend of a model: the policy's own, or the recipe's, which also holds frozen models, on the model's device. A
 * model that is no decoder is on the backend of its kind. Equal devices have equal words, so that they are one engine.
 */
export function backendOfModel(
  { backend, policies, assign }: Pick<Recipe, 'backend' | 'policies' | 'assign'>,
  name: string,
): BackendSpec {
  const policy = policies[name];
  if (policy !== undefined && isOtherModel(policy.model)) return { type: modelKindOf(policy.model).backend };
  const assigned = policy === undefined ? assign[name] : undefined;
  const frozen = typeof assigned === 'object' && assigned.type === 'frozen' ? assigned : undefined;
  const spec: BackendSpec = policy?.backend ?? backend;
  if (spec.type !== 'embedded') return spec;
  const asked = policy?.device ?? frozen?.device ?? spec.device;
  const device = asked === 'cuda:0' ? 'cuda' : asked;
  return device === spec.device ? spec : { ...spec, device };
}

export function backendOf({ lists }: Pick<Recipe, 'lists'>, { type }: BackendSpec): BackendDeclaration {
  return lists.backends.find((row) => typeOf(row) === type) as BackendDeclaration; // the schema has no other types
}

/** The sampler of a policy: its own, or the recipe's. Undefined if the backend samples. */
export function samplerOfModel(
  { sampler, policies }: Pick<Recipe, 'sampler' | 'policies'>,
  name: string,
): SamplerSpec | undefined {
  const policy = policies[name];
  return policy === undefined || isOtherModel(policy.model) ? undefined : (policy.sampler ?? sampler);
}

export function backendText(recipe: Pick<Recipe, 'backend' | 'sampler' | 'policies' | 'assign'>, name: string): string {
  const sampler = samplerOfModel(recipe, name);
  return `'${backendOfModel(recipe, name).type}'${sampler === undefined ? '' : ` with the sampler '${sampler.type}'`}`;
}

export const systemPromptOf = ({ agents, team }: Pick<Recipe, 'agents' | 'team'>, agent: string) =>
  agents[agent]?.system ?? team.agents[agent]?.system;

export function evaluationSampling(
  { agents, evaluation }: Pick<Recipe, 'agents' | 'evaluation'>,
  agent: string,
): Sampling {
  const { sampling, evaluationSampling: apart } = agents[agent] as Recipe['agents'][string];
  const layered = (key: keyof Sampling) => apart?.[key] ?? evaluation.sampling?.[key] ?? sampling[key];
  return {
    temperature: layered('temperature'),
    topP: layered('topP'),
    topK: layered('topK'),
    maxTokens: layered('maxTokens'),
  };
}

/** The price of each agent's tokens, by name: its policy's or its endpoint's. Agents without a price are missing. */
export function pricesOf({ assign, policies }: Pick<Recipe, 'assign' | 'policies'>): Readonly<Record<string, Price>> {
  return Object.fromEntries(
    Object.entries(assign).flatMap(([agent, speaker]) => {
      const priced = typeof speaker === 'string' ? policies[speaker] : speaker;
      const price = priced !== undefined && 'price' in priced ? priced.price : undefined;
      return price === undefined ? [] : [[agent, { train: 0, ...price }]];
    }),
  );
}

/**
 * The weights with the precision of the policy's matrix products. A model that is no policy has the engine's default.
 */
export function inPrecisionOf(policies: Recipe['policies'], policy: string, weights: OwnWeights): OwnWeights {
  const { precision } = policies[policy] ?? {};
  return precision === undefined ? weights : { ...weights, precision };
}

export function agentAdapterSettings(policies: Recipe['policies'], policy: string): AdapterSettings | undefined {
  const adapters = policies[policy]?.agentAdapters;
  if (adapters === undefined) return undefined;
  const { rank, alpha = rank, targets } = adapters;
  return { rank, alpha, targets };
}

/**
 * The weights with the adapters of a policy's agents, if it has such.
 * @param seed The seed of the first adapters. Without it they are read from the weights' directory
 */
export function withAgentAdapters(
  policies: Recipe['policies'],
  { name, agents }: { readonly name: string; readonly agents: readonly string[] },
  weights: OwnWeights,
  seed?: number,
): OwnWeights {
  const settings = agentAdapterSettings(policies, name);
  return settings === undefined ? weights : { ...weights, agentAdapters: { agents, settings, seed } };
}

export function agentProfiles(recipe: Recipe): Readonly<Record<string, AgentProfile>> {
  return Object.fromEntries(
    Object.entries(recipe.team.agents).map(([name, { tools }]) => {
      const system = systemPromptOf(recipe, name);
      return [
        name,
        {
          name,
          ...(system === undefined ? {} : { system }),
          sampling: evaluationSampling(recipe, name),
          ...(tools === undefined ? {} : { tools }),
        },
      ];
    }),
  );
}

/**
 * The plain part of a recipe with the task sources' settings, without secrets. Recipes with equal JSON describe equal
 * runs.
 */
export function recipeJson({
  team,
  tasks,
  code,
  lists,
  estimator,
  sinks,
  functions,
  ...settings
}: Recipe): Record<string, unknown> {
  const { name, seed, assign, ...rest } = settings;
  return {
    name,
    team: team.name,
    tasks: { train: sourceJson(tasks.train), test: sourceJson(tasks.test) },
    seed,
    assign: Object.fromEntries(Object.entries(assign).map(([agent, entry]) => [agent, withoutKey(entry)])),
    ...rest,
  };
}

function withoutKey(entry: Recipe['assign'][string]): unknown {
  if (typeof entry === 'string' || entry.type !== 'endpoint') return entry;
  const { apiKey, ...shown } = entry;
  return shown;
}

const sourceJson = (source: TaskSource) => ({ name: source.name, ...source.settings });
