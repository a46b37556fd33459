import type { BackendSpec } from '../backends/registry.js';
import type { SamplerSpec } from '../backends/samplers/sampler-spec.js';
import type { Sampling } from '../contract/sampling.js';
import type { OwnWeights } from '../contract/weights-spec.js';
import type { EventSink } from '../core/play/event-sink.js';
import type { Price } from '../core/play/token-count.js';
import type { TaskSource } from '../core/task.js';
import type { AgentProfile } from '../model/agent-profile.js';
import type { Team } from '../teams/team.js';
import type { RecipeSettings } from './recipe-schema.js';

/** A resolved recipe: all defaults are filled in and all values checked. recipe.json holds its plain part. */
export interface Recipe extends Readonly<RecipeSettings> {
  readonly team: Team;
  readonly tasks: { readonly train: TaskSource; readonly test: TaskSource };
  /** Where its code lies; absent where a program defined it. */
  readonly code?: RecipeCode | undefined;
  /** Receivers of the run's events. */
  readonly sinks?: readonly EventSink[];
}

/** What loads the code of a recipe again. */
export interface RecipeCode {
  /** A shipped recipe's name, or an absolute path. */
  readonly source: string;
  readonly codeHash: string;
}

/**
 * What holds a model of a recipe: a policy's own backend, or the recipe's, which holds frozen models too. Tables of
 * choices are held here, whatever holds the others.
 */
export function backendOfModel({ backend, policies }: Pick<Recipe, 'backend' | 'policies'>, name: string): BackendSpec {
  if (policies[name]?.model.type === 'choice-table') return { type: 'table' };
  return policies[name]?.backend ?? backend;
}

/** The engine that samples a policy in place of its backend: its own, or the recipe's, if there is one. */
export function samplerOfModel(
  { sampler, policies }: Pick<Recipe, 'sampler' | 'policies'>,
  name: string,
): SamplerSpec | undefined {
  const policy = policies[name];
  return policy === undefined || policy.model.type === 'choice-table' ? undefined : (policy.sampler ?? sampler);
}

/** What computes a model, in words: its backend, and the engine that samples it where there is one. */
export function backendText(recipe: Pick<Recipe, 'backend' | 'sampler' | 'policies'>, name: string): string {
  const sampler = samplerOfModel(recipe, name);
  return `'${backendOfModel(recipe, name).type}'${sampler === undefined ? '' : ` with the sampler '${sampler.type}'`}`;
}

/** The system prompt of an agent: the recipe's, else the team's. */
export const systemPromptOf = ({ agents, team }: Pick<Recipe, 'agents' | 'team'>, agent: string) =>
  agents[agent]?.system ?? team.agents[agent]?.system;

/** How an agent's responses are sampled in evaluations. */
export function evaluationSampling({ agents, evaluation }: Recipe, agent: string): Sampling {
  const { sampling, evaluationSampling: apart } = agents[agent] as Recipe['agents'][string];
  const layered = (key: keyof Sampling) => apart?.[key] ?? evaluation.sampling?.[key] ?? sampling[key];
  return {
    temperature: layered('temperature'),
    topP: layered('topP'),
    topK: layered('topK'),
    maxTokens: layered('maxTokens'),
  };
}

/** The price of each agent's tokens, by its name; an agent whose policy has none, and a frozen one, is missing. */
export function pricesOf({ assign, policies }: Pick<Recipe, 'assign' | 'policies'>): Readonly<Record<string, Price>> {
  return Object.fromEntries(
    Object.entries(assign).flatMap(([agent, policy]) => {
      const price = typeof policy === 'string' ? policies[policy]?.price : undefined;
      return price === undefined ? [] : [[agent, price]];
    }),
  );
}

/** The weights in the precision of a policy's products; a model that is no policy has none of its own. */
export function inPrecisionOf({ policies }: Pick<Recipe, 'policies'>, policy: string, weights: OwnWeights): OwnWeights {
  const { precision = 'float32' } = policies[policy] ?? {};
  return precision === 'float32' ? weights : { ...weights, precision };
}

/** The agents of a recipe by name, as runs record them and as exported models take them along. */
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
export function recipeJson({ team, tasks, code, sinks, ...settings }: Recipe): Record<string, unknown> {
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
