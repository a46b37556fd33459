/** The plan of a run, before anything of it exists: no file is written, no backend started, no model called. */
import { openGateway } from '../../agents/gateway/open-gateway.js';
import { waysIn } from '../../agents/ways.js';
import type { Footprint, MemoryPlan, PlannedPolicy } from '../../backends/backend-declaration.js';
import { type BackendSpec, backendOf } from '../../backends/registry.js';
import type { Generation, PlayableHandle } from '../../contract/sampling.js';
import type { Episode, Turn } from '../../core/episode.js';
import type { Phase } from '../../core/play/play-observer.js';
import { mean } from '../../core/statistics.js';
import { adapterParameterCount } from '../../model/decoder/weights/adapter-tensors.js';
import { parameterCount } from '../../model/decoder/weights/decoder-tensors.js';
import { wholeModel } from '../../model/model-spec.js';
import { runInScope } from '../../platform/async-scopes.js';
import { type Assignment, assignmentOf } from '../../recipe/assignment.js';
import { backendOfModel, evaluationSampling, type Recipe } from '../../recipe/recipe.js';
import { inProcessExecutor } from '../../rollout/executor.js';
import { agentSettings } from '../../run/agent-settings.js';
import { checkToolFormats } from '../../run/checks/recipe-checks.js';
import { modelsByBackend } from '../../run/open-backends.js';
import { taskWarnings } from '../../run/open-run.js';
import type { Tasks } from '../../training/run-state.js';
import { stalenessOf } from '../../training/step/rollouts-ahead.js';
import { tasksOfStep } from '../../training/step/step-tasks.js';
import { traceBatch } from '../../training/warm-start/supervised.js';
import { adapterOf, type KnownModel, knownModel, notHere } from './known-model.js';
import { type AgentUse, agentUse, alternatives, type TokenBudget, tokenBudget } from './token-budget.js';

/** Tasks that are rehearsed, once each, and demonstrations that are counted. */
const REHEARSED = 16;
const DEMONSTRATIONS = 64;

export interface PolicyPlan {
  /** Trained ones, and those of the model that is trained or adapted. */
  readonly trained: number;
  readonly whole: number;
  /** Missing where a server computes. */
  readonly memory?: Footprint;
}

export interface RunPlan {
  readonly recipe: string;
  /** The backend of the recipe. */
  readonly backend: BackendSpec['type'];
  /** Each backend with its policies, where there are several. */
  readonly backends?: readonly { readonly type: BackendSpec['type']; readonly policies: readonly string[] }[];
  readonly steps: number;
  readonly agents: Readonly<Record<string, AgentUse>>;
  readonly tokens: TokenBudget & { readonly warmStart: number };
  /** Undefined where the model's sizes are not known here. */
  readonly policies: Readonly<Record<string, PolicyPlan | undefined>>;
  /**
   * Bytes in this process: bases that adapters share, keys and values, and all together. Missing where a server
   * computes.
   */
  readonly memory?: MemoryPlan['total'];
  /** What is to be said about the memory of servers that compute. */
  readonly memoryElsewhere?: string;
  /** The assumptions behind the figures, warnings about the tasks, and what is missing. */
  readonly notes: readonly string[];
}

/**
 * Counts what a recipe asks for. Prompts and calls are those of a rehearsal, in which every agent answers with as many
 * tokens as it may; the team's `play` runs, its `reward` does not.
 * @throws CheckpointError, TokenizerError when a model that is here cannot be used
 */
export async function planRun(recipe: Recipe, tasks: Tasks): Promise<RunPlan> {
  const assignment = assignmentOf(recipe);
  const models = new Map<string, KnownModel>();
  for (const { name, model } of assignment.models)
    models.set(name, {
      ...(await knownModel(wholeModel(model), backendOfModel(recipe, name))),
      adapter: await adapterOf(model),
    });
  checkToolFormats(recipe, assignment, Object.fromEntries(Array.from(models).filter(([, { isHere }]) => isHere)));
  for (const { name } of assignment.endpoints) models.set(name, notHere());
  const episodes = await rehearse(recipe, assignment, tasks, models, 'training');
  const evaluated = evaluatesAsItTrains(recipe)
    ? episodes
    : await rehearse(recipe, assignment, tasks, models, 'evaluation');
  const use = agentUse(recipe, episodes);
  const played = new Set([...episodes, ...evaluated]);
  const turns = [...played].flatMap((episode) => episode.turns);
  const lengthOf = ({ prompt, response }: Turn) => prompt.length + response.length;
  const longest = Math.max(0, ...turns.map(lengthOf));
  const shares = turns.map((turn) => turn.response.length / lengthOf(turn));
  const written = shares.length === 0 ? 1 : Math.max(...shares);
  const held = modelsByBackend(recipe, Object.keys(recipe.policies));
  const plans = await Promise.all(
    held.map(({ spec, names }) => {
      const planned = plannedPolicies(recipe, names, models);
      return backendOf(spec).plan.memory(spec, planned, longest, written);
    }),
  );
  const policies = Object.fromEntries(
    held.flatMap(({ names }, i) => names.map((policy) => [policy, policyPlan(policy, models, plans[i])])),
  );
  const elsewhere = held.flatMap(({ spec, names }) => {
    const sized = names.flatMap((name) => policies[name] ?? []);
    return backendOf(spec).plan.memoryElsewhere(sized) ?? [];
  });
  const memory = totalMemory(plans);
  return {
    recipe: recipe.name,
    backend: recipe.backend.type,
    ...(held.length === 1 && held[0]?.spec === recipe.backend
      ? {}
      : { backends: held.map(({ spec, names }) => ({ type: spec.type, policies: names })) }),
    steps: recipe.training.steps,
    agents: use,
    tokens: {
      ...tokenBudget(recipe, use, agentUse(recipe, evaluated)),
      warmStart: warmStartTokens(recipe, assignment, models),
    },
    policies,
    ...(memory === undefined ? {} : { memory }),
    ...(elsewhere.length === 0 ? {} : { memoryElsewhere: elsewhere.join('; ') }),
    notes: [
      ...taskWarnings(tasks),
      ...notes(recipe, episodes, models),
      ...plans.flatMap((plan) => plan?.notes ?? []),
      ...alternativesNote(recipe, use),
    ],
  };
}

/** Whether no response may be longer, or shorter, in evaluations than in training. */
function evaluatesAsItTrains(recipe: Recipe): boolean {
  return Object.entries(recipe.agents).every(
    ([agent, { sampling }]) => evaluationSampling(recipe, agent).maxTokens === sampling.maxTokens,
  );
}

/** Plays the first tasks with answers that are as long as they may be in this phase and say nothing. */
async function rehearse(
  recipe: Recipe,
  assignment: Assignment,
  tasks: Tasks,
  models: ReadonlyMap<string, KnownModel>,
  phase: Exclude<Phase, 'baseline'>,
): Promise<Episode[]> {
  const context = {
    agents: agentSettings(recipe, assignment),
    policies: Object.fromEntries(Array.from(models, ([name, model]) => [name, rehearsed(model)])),
    ...{ seed: recipe.seed, maxTurns: recipe.training.maxTurns },
  };
  const { maxTurns } = context;
  const gateway = recipe.gateway && (await openGateway(recipe.gateway, { maxTurns, warn: () => {} }));
  const executor = inProcessExecutor({
    ...context,
    timeoutMs: recipe.training.episodeTimeoutMs,
    inScope: runInScope,
    waysIn: (episode, asks, measure) => waysIn(episode, asks, measure, gateway),
  });
  const first = tasksOfStep(tasks.train, recipe.seed, 1, Math.min(REHEARSED, recipe.training.tasksPerStep));
  // An agent whose calls only an endpoint's server reads is offered its tools here too.
  const agents = Object.entries(recipe.team.agents).map(([name, agent]) => [
    name,
    { tools: 'plain' as const, ...agent },
  ]);
  const team = { ...recipe.team, agents: Object.fromEntries(agents), reward: () => 0 };
  try {
    const groups = await executor.playGroups({ team, tasks: first, groupSize: 1, phase, step: 1 });
    return groups.flatMap(({ episodes }) => episodes);
  } finally {
    await gateway?.close();
  }
}

/** A model whose answers repeat the prompt's tokens, which are ids that every tokenizer can read back. */
function rehearsed({ tokenizer, context }: KnownModel): PlayableHandle {
  return {
    tokenizer,
    context,
    async generate({ prompt, stopTokens, maxTokens }): Promise<Generation> {
      const words = prompt.filter((token) => !stopTokens.includes(token));
      const repeated = words.length > 0 ? words : prompt;
      const tokens = Array.from({ length: maxTokens }, (_, i) => repeated[i % repeated.length] as number);
      return { tokens, logprobs: tokens.map(() => 0), finishReason: 'length', policyVersion: 0 };
    },
  };
}

function policyPlan(
  policy: string,
  models: ReadonlyMap<string, KnownModel>,
  plan: MemoryPlan | undefined,
): PolicyPlan | undefined {
  const { config, adapter, parameters } = models.get(policy) as KnownModel;
  if (config === undefined) return parameters === undefined ? undefined : { trained: parameters, whole: parameters };
  const whole = parameterCount(config);
  const memory = plan?.policies[policy];
  return {
    trained: adapter === undefined ? whole : adapterParameterCount(config, adapter),
    whole,
    ...(memory === undefined ? {} : { memory }),
  };
}

/** The memory of all engines in this process; undefined where there is none, or the sizes of a policy are not known. */
function totalMemory(plans: readonly (MemoryPlan | undefined)[]): MemoryPlan['total'] {
  const totals = plans.flatMap((plan) => (plan === undefined ? [] : [plan.total]));
  const whole = totals.filter((total) => total !== undefined);
  if (whole.length === 0 || whole.length < totals.length) return undefined;
  const sum = (kind: 'bases' | 'cache' | 'total') => whole.reduce((bytes, total) => bytes + total[kind], 0);
  return { bases: sum('bases'), cache: sum('cache'), total: sum('total') };
}

function plannedPolicies(
  recipe: Recipe,
  names: readonly string[],
  models: ReadonlyMap<string, KnownModel>,
): PlannedPolicy[] {
  return names.map((name) => {
    const { model, precision, optimizer } = recipe.policies[name] as Recipe['policies'][string];
    const { config, adapter: settings, kept = 'float32' } = models.get(name) as KnownModel;
    const agents = Object.values(recipe.assign).filter((assigned) => assigned === name).length;
    const adapter =
      model.type === 'lora' && settings !== undefined
        ? { settings, base: JSON.stringify(model.base), kept }
        : undefined;
    return { name, config, adapter, precision, optimizer, agents, versions: stalenessOf(recipe) + 1 };
  });
}

/** At most: a loss target ends it earlier, and one in the cache costs nothing. */
function warmStartTokens(recipe: Recipe, assignment: Assignment, models: ReadonlyMap<string, KnownModel>): number {
  const { warmStart } = recipe;
  if (warmStart === undefined) return 0;
  const agents = Object.keys(recipe.agents);
  const all = assignment.taught;
  const learners = warmStart.share === 'base' ? all.slice(0, 1) : all;
  return learners.reduce((sum, { name, agents: spokenFor }) => {
    const { tokenizer, config, isHere } = models.get(name) as KnownModel;
    const context = (isHere ? config?.context : undefined) ?? Number.POSITIVE_INFINITY; // a stand-in counts otherwise
    const learned = warmStart.share === 'base' ? agents : spokenFor;
    const samples = traceBatch(
      recipe,
      { agents: learned, tokenizer, context },
      DEMONSTRATIONS,
      'train',
      1,
      warmStart.seed,
    );
    return sum + warmStart.steps * warmStart.batch * mean(samples.map(({ tokens }) => tokens.length));
  }, 0);
}

/** What the estimator plays besides, where it wants alternatives. */
function alternativesNote(recipe: Recipe, use: Readonly<Record<string, AgentUse>>): string[] {
  const { episodes, whole } = alternatives(recipe, use);
  if (episodes === 0) return [];
  return [
    `'${recipe.advantage.type}' plays every turn again from its context on: ${episodes.toFixed(1)} more episodes for each that is learnt from, whose tokens are those of ${whole.toFixed(1)} whole ones`,
  ];
}

function notes(recipe: Recipe, episodes: readonly Episode[], models: ReadonlyMap<string, KnownModel>): string[] {
  const failed = episodes.filter(({ failure }) => failure !== undefined);
  const reached = new Set(episodes.flatMap(({ turns }) => turns.map(({ agent }) => agent)));
  const unreached = Object.keys(recipe.agents).filter((agent) => !reached.has(agent));
  return [
    `calls and prompts are those of a rehearsal of ${episodes.length} tasks in which every answer has all of its maxTokens and says nothing; an episode makes at most ${recipe.training.maxTurns} calls, and drmas probe counts them`,
    ...(failed[0]?.failure === undefined
      ? []
      : [`${failed.length} rehearsed episodes failed, the first because: ${failed[0].failure.message}`]),
    ...(unreached.length === 0
      ? []
      : [
          `the rehearsal never reached ${unreached.join(', ')}, whose answers a team asks for only after others that say something: their tokens are missing above; drmas probe plays with the models and counts them`,
        ]),
    ...(Object.values(recipe.assign).every((policy) => typeof policy === 'string')
      ? []
      : ['what frozen agents write, and the memory of their models, are not counted']),
    ...(recipe.training.filter === undefined ? [] : ['tasks that a filter plays again are not counted']),
    ...new Set([...models.values()].flatMap(({ unknown }) => unknown ?? [])),
  ];
}
