/** Counts a run's tokens and memory before it starts: writes no file, starts no backend, calls no model. */

import type { BackendDeclaration, Footprint, MemoryPlan, PlannedPolicy, SizedModel } from '@drmas/engine/backends';
import type { AdapterSettings, Generation, PlayableHandle } from '@drmas/engine/contract';
import { exactJson, fitsJsonSchema, HubError, isObject, parseExactly } from '@drmas/engine/errors';
import { modelDirectory, readAdapterDescription } from '@drmas/engine/formats';
import type { Phase } from '@drmas/engine/host';
import { mean } from '@drmas/engine/math';
import {
  adapterParameterCount,
  isOtherModel,
  type ModelSpec,
  modelKindOf,
  type OtherModelSpec,
  parameterCount,
  type WholeModelSpec,
  wholeModel,
  wholeWeights,
} from '@drmas/engine/model';
import type { Episode, Turn } from '@drmas/engine/nouns';
import { nodeFiles } from '@drmas/engine/platform';
import { bytesTokenizer } from '@drmas/engine/tokens';
import { openRollouts } from '../../../gateway/rollouts.js';
import {
  demonstrationsOf,
  evaluatedTasks,
  rolloutSettings,
  stalenessOf,
  type Tasks,
  tasksOfStep,
  traceBatch,
} from '../../../method/index.js';
import {
  type Assignment,
  agentAdapterSettings,
  assignmentOf,
  type BackendSpec,
  backendOf,
  backendOfModel,
  evaluationSampling,
  type Recipe,
} from '../../../method/recipe.js';
import { demandedSchema, inProcessExecutor } from '../../../teams/rollout.js';
import { judgesOf } from '../../../teams/tasks.js';
import { checkToolFormats } from '../../run/checks/recipe-checks.js';
import { weakSettings } from '../../run/checks/weak-settings.js';
import { type BackendModels, modelPlaces, modelsByBackend } from '../../run/open/open-backends.js';
import { fittedTasks, leakedTasks, prepareTasks, taskWarnings } from '../../run/open/prepare-tasks.js';
import { type AgentUse, agentUse, extraRollouts, type TokenBudget, tokenBudget } from './token-budget.js';

/** Tasks of the rehearsal, each played once, and demonstrations that are counted. */
const REHEARSED = 16;
const DEMONSTRATIONS = 64;

interface PolicyPlan {
  /** Trained parameters, and all parameters of the model that is trained or adapted. */
  readonly trained: number;
  readonly whole: number;
  /** Absent if a server computes. */
  readonly memory?: Footprint;
}

export interface RunPlan {
  readonly recipe: string;
  readonly backend: BackendSpec['type'];
  readonly backends?: readonly { readonly type: BackendSpec['type']; readonly policies: readonly string[] }[];
  readonly steps: number;
  readonly agents: Readonly<Record<string, AgentUse>>;
  readonly tokens: TokenBudget & { readonly warmStart: number };
  /** Undefined if the model's sizes are not known here. */
  readonly policies: Readonly<Record<string, PolicyPlan | undefined>>;
  /**
   * Bytes in this process: bases that adapters share, keys and values, and the total. Absent if a server computes.
   */
  readonly memory?: MemoryPlan['total'];
  /** The same by device, if policies are placed on several. */
  readonly memoryByDevice?: Readonly<Record<string, NonNullable<MemoryPlan['total']>>>;
  readonly memoryElsewhere?: string;
  /** False if a device that is here lacks the memory; absent if no device was found to compare. */
  readonly fits?: boolean;
  readonly notes: readonly string[];
  /** The notes that explain the rehearsal. They do not apply to counts of played episodes. */
  readonly rehearsal: readonly string[];
}

/**
 * Counts tokens and memory of a recipe's run. Prompts and calls come from a rehearsal: each agent answers with its
 * largest number of tokens. The team's `play` runs, its rewards do not.
 * @throws CheckpointError, TokenizerError if a local model cannot be used
 */
export async function planRun(recipe: Recipe, loaded: Tasks): Promise<RunPlan> {
  const assignment = assignmentOf(recipe);
  const models = await modelsOf(recipe, assignment);
  checkToolFormats(recipe.team, assignment, Object.fromEntries(Array.from(models).filter(([, { isHere }]) => isHere)));
  const [first] = models.values();
  const tasks = first?.isHere === true ? fittedTasks(loaded, first) : loaded;
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
  const held = modelsByBackend(modelPlaces(recipe, Object.keys(recipe.policies)));
  const plans = await Promise.all(
    held.map(({ spec, names }) => {
      const planned = plannedPolicies(recipe, names, models);
      return backendOf(recipe, spec).plan.memory(spec, planned, longest, written);
    }),
  );
  const policies = Object.fromEntries(
    held.flatMap(({ names }, i) => names.map((policy) => [policy, policyPlan(recipe, policy, models, plans[i])])),
  );
  const elsewhere = held.flatMap(({ spec, names }) => {
    const sized = names.flatMap((name) => policies[name] ?? []);
    return backendOf(recipe, spec).plan.memoryElsewhere(sized) ?? [];
  });
  const memory = totalMemory(plans);
  const memoryByDevice = memory === undefined ? {} : deviceMemory(held, plans);
  const verdicts = plans.flatMap((plan) => plan?.fits ?? []);
  const rehearsal = rehearsalNotes(recipe, episodes);
  const heldOut = evaluatedTasks(tasks.test, recipe.evaluation.tasks);
  const budget = tokenBudget(recipe, heldOut, use, agentUse(recipe, evaluated));
  return {
    recipe: recipe.name,
    backend: recipe.backend.type,
    ...(held.length === 1 && held[0]?.spec === recipe.backend
      ? {}
      : { backends: held.map(({ spec, names }) => ({ type: spec.type, policies: names })) }),
    steps: recipe.training.steps,
    agents: use,
    tokens: {
      ...budget,
      warmStart: warmStartTokens(recipe, assignment, models),
    },
    policies,
    ...(memory === undefined ? {} : { memory }),
    ...(Object.keys(memoryByDevice).length < 2 ? {} : { memoryByDevice }),
    ...(elsewhere.length === 0 ? {} : { memoryElsewhere: elsewhere.join('; ') }),
    ...(verdicts.length === 0 ? {} : { fits: !verdicts.includes(false) }),
    notes: [
      ...taskWarnings(tasks),
      ...leakedTasks(recipe.tasks, tasks, recipe.evaluation.tasks),
      ...weakSettings(recipe).map(({ message }) => message),
      ...rehearsal,
      ...missingNotes(recipe, models),
      ...judgeNotes(recipe, budget.episodes),
      ...plans.flatMap((plan) => plan?.notes ?? []),
      ...extraRollouts(recipe, use).flatMap(({ note }) => note ?? []),
    ],
    rehearsal,
  };
}

/**
 * The turns of a rehearsal of a recipe's first tasks: the prompts are those that the agents read in training, the
 * answers have no meaning. Episodes that fail count up to their failure.
 * @throws TaskError, RecipeError if the tasks or the recipe cannot be used; CheckpointError, TokenizerError if a local
 *   model cannot be used
 */
export async function rehearsedTurns(recipe: Recipe): Promise<readonly Turn[]> {
  const tasks = await prepareTasks(recipe);
  const assignment = assignmentOf(recipe);
  const models = await modelsOf(recipe, assignment);
  for (const { name } of assignment.endpoints) models.set(name, notHere());
  return (await rehearse(recipe, assignment, tasks, models, 'training')).flatMap(({ turns }) => turns);
}

/** The facts about each model of a recipe that is no endpoint. @throws CheckpointError, TokenizerError */
async function modelsOf(recipe: Recipe, { models }: Assignment): Promise<Map<string, KnownModel>> {
  const known = new Map<string, KnownModel>();
  for (const { name, model } of models)
    known.set(name, {
      ...(await knownModel(wholeModel(model), backendOf(recipe, backendOfModel(recipe, name)))),
      adapter: await adapterOf(model),
    });
  return known;
}

function evaluatesAsItTrains(recipe: Recipe): boolean {
  return Object.entries(recipe.agents).every(
    ([agent, { sampling }]) => evaluationSampling(recipe, agent).maxTokens === sampling.maxTokens,
  );
}

/** Plays the first tasks with answers of the greatest length that this phase allows. */
async function rehearse(
  recipe: Recipe,
  assignment: Assignment,
  tasks: Tasks,
  models: ReadonlyMap<string, KnownModel>,
  phase: Exclude<Phase, 'baseline'>,
): Promise<Episode[]> {
  const speakers = Object.fromEntries(Array.from(models, ([name, model]) => [name, rehearsed(model)]));
  const { maxOutcomeBytes: _, ...settings } = rolloutSettings(recipe, assignment); // no outcome is kept
  const { context, close } = await openRollouts(settings, speakers, { gateway: recipe.gateway, onIgnored: () => {} });
  const executor = inProcessExecutor(context);
  const first = tasksOfStep(tasks.train, recipe.seed, 1, Math.min(REHEARSED, recipe.training.tasksPerStep));
  // Agents whose tool calls only an endpoint's server can parse get their tools here too.
  const agents = Object.entries(recipe.team.agents).map(([name, agent]) => [
    name,
    { tools: 'plain' as const, ...agent },
  ]);
  // A judge of these would cost money.
  const { success: _success, metrics: _metrics, rewardGroup: _judge, ...others } = recipe.team;
  const team = { ...others, agents: Object.fromEntries(agents), reward: () => 0 };
  try {
    const groups = await executor.playGroups({ team, tasks: first, groupSize: 1, phase, step: 1 });
    return groups.flatMap(({ episodes }) => episodes);
  } finally {
    await close();
  }
}

/**
 * A model whose answers repeat tokens of the prompt, so that its tokenizer can decode them. If the prompt demands JSON
 * of a schema, its answer fits: the program reads it, and calls the agents that come next.
 */
function rehearsed({ tokenizer, context }: KnownModel): PlayableHandle {
  let turn = 0;
  const jsonFor = (prompt: readonly number[]) => {
    const schema = demandedSchema(tokenizer.decode(prompt));
    const json = schema === undefined ? undefined : exactJson(exampleOf(parseExactly(exactJson(schema)), turn++));
    return json !== undefined && schema !== undefined && fitsJsonSchema(json, schema) ? json : undefined;
  };
  return {
    tokenizer,
    context,
    async generate({ prompt, stopTokens, maxTokens }): Promise<Generation> {
      const words = prompt.filter((token) => !stopTokens.includes(token));
      const filled = (first: readonly number[], rest: readonly number[], count: number) =>
        Array.from({ length: count }, (_, i) => first[i] ?? (rest[(i - first.length) % rest.length] as number));
      const json = jsonFor(prompt);
      const answer = json === undefined ? [] : tokenizer.encode(json);
      const [stop] = stopTokens;
      const isWhole = json !== undefined && stop !== undefined && answer.length < maxTokens;
      const tokens = isWhole
        ? [...filled(answer, tokenizer.encode('\n'), maxTokens - 1), stop]
        : filled(answer, words.length > 0 ? words : prompt, maxTokens);
      const finishReason = isWhole ? 'stop' : 'length';
      return { tokens, logprobs: tokens.map(() => 0), finishReason, policyVersion: 0 };
    },
  };
}

/** A value for a JSON schema: short texts and lists, and of several options the one whose turn it is. */
function exampleOf(schema: unknown, turn: number): unknown {
  if (!isObject(schema)) return null;
  const { properties = {}, items, minItems = 1, maxItems = 1000, minLength = 1, exclusiveMinimum = -1 } = schema;
  const options = schema.enum ?? schema.anyOf ?? schema.oneOf;
  if (Array.isArray(options)) {
    const option: unknown = options[turn % options.length];
    return options === schema.enum ? option : exampleOf(option, turn);
  }
  if ('const' in schema) return schema.const;
  switch (schema.type) {
    case 'object':
      return Object.fromEntries(Object.entries(properties as object).map(([name, of]) => [name, exampleOf(of, turn)]));
    case 'array':
      return Array.from({ length: Math.min(Number(minItems), Number(maxItems)) }, () => exampleOf(items, turn));
    case 'string':
      return 'x'.repeat(Math.min(1000, Number(minLength)));
    case 'number':
    case 'integer':
      return [schema.minimum, Number(exclusiveMinimum) + 1].reduce<unknown>(
        (most, bound) => (Number(bound ?? 0) > Number(most) ? bound : most),
        0,
      );
    case 'boolean':
      return turn % 2 === 0;
    default:
      return null;
  }
}

function policyPlan(
  recipe: Recipe,
  policy: string,
  models: ReadonlyMap<string, KnownModel>,
  plan: MemoryPlan | undefined,
): PolicyPlan | undefined {
  const { config, adapter, parameters } = models.get(policy) as KnownModel;
  if (config === undefined) return parameters === undefined ? undefined : { trained: parameters, whole: parameters };
  const whole = parameterCount(config);
  const memory = plan?.policies[policy];
  const ofAgents = agentAdapterSettings(recipe.policies, policy);
  const trunk = recipe.policies[policy]?.agentAdapters?.trunkRate === 0 ? 0 : whole;
  const adapters = ofAgents === undefined ? 0 : agentsOf(recipe, policy) * adapterParameterCount(config, ofAgents);
  return {
    trained: adapter === undefined ? trunk + adapters : adapterParameterCount(config, adapter),
    whole,
    ...(memory === undefined ? {} : { memory }),
  };
}

/** The memory of all engines in this process; undefined without one, or if a policy's sizes are not known. */
function totalMemory(plans: readonly (MemoryPlan | undefined)[]): MemoryPlan['total'] {
  const totals = plans.flatMap((plan) => (plan === undefined ? [] : [plan.total]));
  const whole = totals.filter((total) => total !== undefined);
  if (whole.length === 0 || whole.length < totals.length) return undefined;
  const sum = (kind: 'bases' | 'cache' | 'total') => whole.reduce((bytes, total) => bytes + total[kind], 0);
  return { bases: sum('bases'), cache: sum('cache'), total: sum('total') };
}

/** The memory of each device; engines on one device share it. */
function deviceMemory(
  held: readonly BackendModels[],
  plans: readonly (MemoryPlan | undefined)[],
): Readonly<Record<string, NonNullable<MemoryPlan['total']>>> {
  const byDevice = new Map<string, (MemoryPlan | undefined)[]>();
  for (const [i, { spec }] of held.entries()) {
    const device = 'device' in spec && typeof spec.device === 'string' ? spec.device : 'cpu';
    if (plans[i]?.total !== undefined) byDevice.set(device, [...(byDevice.get(device) ?? []), plans[i]]);
  }
  return Object.fromEntries(
    Array.from(byDevice).flatMap(([device, ofDevice]) => {
      const total = totalMemory(ofDevice);
      return total === undefined ? [] : [[device, total]];
    }),
  );
}

function plannedPolicies(
  recipe: Recipe,
  names: readonly string[],
  models: ReadonlyMap<string, KnownModel>,
): PlannedPolicy[] {
  return names.map((name) => {
    const { model, precision, optimizer } = recipe.policies[name] as Recipe['policies'][string];
    const { config, adapter: settings, kept = 'float32' } = models.get(name) as KnownModel;
    const adapter =
      model.type === 'lora' && settings !== undefined
        ? { settings, base: JSON.stringify(model.base), kept }
        : undefined;
    const agentAdapters = agentAdapterSettings(recipe.policies, name);
    const versions = stalenessOf(recipe.rollout) + 1;
    return { name, config, adapter, agentAdapters, precision, optimizer, agents: agentsOf(recipe, name), versions };
  });
}

const agentsOf = (recipe: Recipe, policy: string): number =>
  Object.values(recipe.assign).filter((assigned) => assigned === policy).length;

/** The most tokens of the warm start. A loss target ends it earlier, and a cached warm start costs nothing. */
function warmStartTokens(recipe: Recipe, assignment: Assignment, models: ReadonlyMap<string, KnownModel>): number {
  const { warmStart } = recipe;
  if (warmStart === undefined) return 0;
  const agents = Object.keys(recipe.agents);
  const all = assignment.demonstrationLearners;
  const learners = warmStart.share === 'base' ? all.slice(0, 1) : all;
  return learners.reduce((sum, { name, agents: ownAgents }) => {
    const { tokenizer, config, isHere } = models.get(name) as KnownModel;
    const context = (isHere ? config?.context : undefined) ?? Number.POSITIVE_INFINITY; // a stand-in counts differently
    const learned = warmStart.share === 'base' ? agents : ownAgents;
    const samples = traceBatch(
      demonstrationsOf(recipe),
      { agents: learned, tokenizer, context },
      DEMONSTRATIONS,
      'train',
      1,
      warmStart.seed,
    );
    return sum + warmStart.steps * warmStart.batch * mean(samples.map(({ tokens }) => tokens.length));
  }, 0);
}

function rehearsalNotes(recipe: Recipe, episodes: readonly Episode[]): string[] {
  const failed = episodes.filter(({ failure }) => failure !== undefined);
  const reached = new Set(episodes.flatMap(({ turns }) => turns.map(({ agent }) => agent)));
  const unreached = Object.keys(recipe.agents).filter((agent) => !reached.has(agent));
  return [
    `calls and prompts come from a rehearsal of ${episodes.length} tasks. Each answer in it has all of its maxTokens and no meaning. An episode makes at most ${recipe.training.maxTurns} calls; drmas plan --play counts them with the models`,
    ...(failed[0]?.failure === undefined
      ? []
      : [`${failed.length} rehearsed episodes failed, the first because: ${failed[0].failure.message}`]),
    ...(unreached.length === 0
      ? []
      : [
          `the rehearsal never reached ${unreached.join(', ')}: the team calls them only after an answer with a meaning. Their tokens are missing above; drmas plan --play counts them with the models`,
        ]),
  ];
}

/** The calls of hosted judges in the reward, and their cost. */
function judgeNotes({ team }: Recipe, { training, evaluation }: TokenBudget['episodes']): string[] {
  const judges = judgesOf(team);
  if (judges.length === 0) return [];
  const price = judges.reduce((sum, judge) => sum + judge.price, 0);
  const [episodes, names] = [training + evaluation, judges.map(({ name }) => name).join(', ')];
  const cost = price === 0 ? '' : `, at a cost of ${(episodes * price).toPrecision(3)}`;
  return [
    `the reward asks ${names} (hosted models) up to ${Math.round(episodes * judges.length)} times${cost}; a run with judges does not repeat bit for bit`,
  ];
}

function missingNotes(recipe: Recipe, models: ReadonlyMap<string, KnownModel>): string[] {
  return [
    ...(Object.values(recipe.assign).every((policy) => typeof policy === 'string')
      ? []
      : ['the tokens of frozen agents and the memory of their models are not counted']),
    ...(recipe.training.filter === undefined
      ? []
      : ['tasks that the filter replaces are played too; they are not counted']),
    ...new Set([...models.values()].flatMap(({ unknown }) => unknown ?? [])),
  ];
}

/** The facts that are known about a model without a download. */
interface KnownModel extends SizedModel {
  readonly parameters?: number;
  /** False for a stand-in whose tokenizer is not the model's. */
  readonly isHere: boolean;
  readonly unknown?: string | undefined;
  readonly adapter?: AdapterSettings | undefined;
}

async function adapterOf(model: ModelSpec): Promise<AdapterSettings | undefined> {
  if (model.type !== 'lora') return undefined;
  return 'from' in model ? (await readAdapterDescription(nodeFiles, model.from)).settings : model;
}

/** @throws CheckpointError, TokenizerError if a local model cannot be used */
async function knownModel(
  model: WholeModelSpec | OtherModelSpec,
  { plan }: Pick<BackendDeclaration, 'plan'>,
): Promise<KnownModel> {
  if (isOtherModel(model)) return { ...modelKindOf(model).facts(model), config: undefined, isHere: true };
  const known = wholeWeights(model, 0);
  if (known.type === 'random') {
    const { tokenizer, config } = known;
    return { tokenizer, config, context: config.context, isHere: true };
  }
  try {
    const environment = { ...process.env, HF_HUB_OFFLINE: '1' };
    const directory = await modelDirectory(known.directory, { files: 'tokenizer', environment });
    const model = await plan.readModel(nodeFiles, directory, known.chatTemplate);
    if (model.config !== undefined) return { ...model, isHere: true };
    const unknown = `${known.directory} is of a family whose layers are not known here, and so its sizes`;
    return { ...model, unknown, isHere: true };
  } catch (error) {
    if (!(error instanceof HubError)) throw error;
    return notHere(
      `${known.directory} is not on this machine: its sizes are not known, and its prompts are counted in bytes`,
    );
  }
}

/** A stand-in tokenizer for a model that is not on this machine: one token a byte, the most that a text can have. */
function notHere(unknown?: string): KnownModel {
  return { tokenizer: bytesTokenizer(), config: undefined, context: Number.POSITIVE_INFINITY, unknown, isHere: false };
}
