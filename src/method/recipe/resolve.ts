/** Resolves a recipe: from its definition and `--set` overrides to checked values with all defaults filled in. */

import type { CompleteText } from '@drmas/engine/endpoints';
import {
  faultsError,
  isObject,
  messageOf,
  parseAt,
  RecipeError,
  requireKnownKeys,
  shown,
  suggestion,
} from '@drmas/engine/errors';
import { defaultOptimizer, modelSchema } from '@drmas/engine/model';
import type { Split, TaskSource } from '@drmas/engine/nouns';
import type { Team } from '../../teams/index.js';
import { benchmarks } from '../../teams/tasks.js';
import { needOf, openEstimator } from '../advantage/estimators/index.js';
import type { RecipeDefinition, RecipeInput } from './define.js';
import { keyVariablesOf, type Lists, sectionsOf } from './lists.js';
import { applyOverrides, type Override, type Plain, parseOverride, removalsOfNothing } from './overrides.js';
import { withPlugins } from './plugins/plugins.js';
import { checkLosses } from './policy-losses.js';
import type { Recipe, RecipeCode } from './recipe.js';
import { assignmentMap, assignmentWord, defaultChoices, settingsSchema } from './recipe-schema.js';
import { requireNoneRemoved } from './removed-settings.js';

/** The sampling settings that neither the recipe nor the team's agent sets. */
const defaultSampling = { temperature: 1, topP: 1, topK: 0, maxTokens: 256 };

export interface ResolveOptions {
  /** The overrides, each as `path.to.key=value`, in order. */
  readonly overrides?: readonly string[];
  readonly name?: string;
  readonly code?: RecipeCode | undefined;
  /**
   * Makes a path of a model absolute that begins with `./` or `../`. By default such paths start at the working
   * directory.
   */
  readonly absolutePath?: ((path: string) => string) | undefined;
  readonly allFrozen?: boolean | undefined;
}

/**
 * @param standard The lists of everything that a recipe can name without plug-ins
 * @throws RecipeError with the dotted path of the wrong value and the expected value
 */
export function resolveWith(standard: Lists, definition: RecipeDefinition, options: ResolveOptions): Recipe {
  const { team, tasks, use, sinks, assign: assigned, ...others } = definition.input;
  const { assign, functions } = withoutFunctions(assigned);
  const given = assign === undefined ? others : { ...others, assign };
  const lists = withPlugins(standard, use);
  const keys = keyVariablesOf(lists);
  const overrides = (options.overrides ?? []).map((text) => parseOverride(text, keys));
  checkSinks(sinks);
  checkTeam(team);
  const agents = Object.keys(team.agents);
  // Policies and agents inherit from `model` and from the team: their overrides apply after that.
  const inherits = (override: Override) => override.path[0] === 'policies' || override.path[0] === 'agents';
  const ofTasks = (override: Override) => override.path[0] === 'tasks';
  const first = overrides.filter((override) => !inherits(override) && !ofTasks(override));
  const defaults = { name: options.name ?? team.name, ...defaultChoices };
  const base = { ...defaults, ...plainPart(given, options.absolutePath) };
  const applied = applyOverrides(base, first);
  const reassigned = first.some(({ path, value }) => path.join() === 'assign' && typeof value === 'string');
  const tree = withoutIdleWarmStart(reassigned ? withMovedPolicies(applied, agents) : applied);
  checkTrainable(tree.model);
  if (tree.model !== undefined) parseAt(modelSchema, tree.model, ['model']);
  const { model, ...complete } = withInherited(tree, team, agents, lists);
  const later = overrides.filter(inherits);
  const changed = applyOverrides(complete, later);
  requireModels(changed, model);
  requireNoneRemoved(changed);
  checkFrozen(changed, options);
  const schema = settingsSchema(
    lists,
    agents,
    policiesOf(changed.assign),
    changed.assign,
    Object.keys(team.limits ?? {}),
  );
  const settings = parseAt(schema, changed);
  // The schema sees no key that `null` removed. An override may remove what an earlier one has set.
  const written = applyOverrides(
    complete,
    later.filter(({ value }) => value !== null),
  );
  for (const { path } of [...removalsOfNothing(base, first), ...removalsOfNothing(written, later)]) {
    const tree = applyOverrides({ ...changed, model }, [{ path, value: 0 }]);
    requireNoneRemoved(tree);
    requireKnownKeys(schema.extend({ model: modelSchema.optional() }), tree);
  }
  checkLosses(settings, lists);
  const { limits } = settings;
  return {
    ...settings,
    team: limits === undefined ? team : { ...team, limits: { ...team.limits, ...(limits as Record<string, number>) } },
    tasks: resolveTasks(tasks, overrides.filter(ofTasks)),
    code: options.code,
    lists,
    estimator: openEstimator(settings.advantage, lists.estimators),
    ...(sinks === undefined ? {} : { sinks }),
    ...functionsIn(settings.assign, functions),
  };
}

function withoutIdleWarmStart({ warmStart, ...tree }: Plain): Plain {
  const isIdle = warmStart === undefined || (isObject(warmStart) && warmStart.steps === 0);
  return isIdle ? tree : { ...tree, warmStart };
}

/** @throws RecipeError if the model of the recipe is one that is never trained */
function checkTrainable(model: unknown): void {
  if (isObject(model) && ['frozen', 'endpoint', 'text', 'constant'].includes(String(model.type)))
    throw new RecipeError(
      'it is the model to train, and a frozen model is never trained; freeze single agents with ' +
        "assign: { judge: frozen(...), solver: 'solver' }",
      'model',
    );
}

/** The assignment as plain data, and the functions of its entries of type `text` by the agent. */
function withoutFunctions(assign: RecipeInput['assign']): {
  readonly assign: RecipeInput['assign'] | undefined;
  readonly functions: Readonly<Record<string, CompleteText>>;
} {
  if (!isObject(assign)) return { assign, functions: {} };
  const functions: Record<string, CompleteText> = {};
  const plain = Object.entries<unknown>(assign).map(([agent, entry]) => {
    if (!isObject(entry) || entry.type !== 'text') return [agent, entry];
    const { complete, ...settings } = entry;
    if (typeof complete !== 'function')
      throw new RecipeError(`expected a function, got ${shown(complete)}`, `assign.${agent}.complete`);
    functions[agent] = complete as CompleteText;
    return [agent, settings];
  });
  return { assign: Object.fromEntries(plain) as RecipeInput['assign'], functions };
}

/** The functions that the resolved assignment asks. @throws RecipeError if an override names one that is not there */
function functionsIn(
  assign: Recipe['assign'],
  functions: Readonly<Record<string, CompleteText>>,
): Pick<Recipe, 'functions'> {
  const asked = Object.entries(assign).flatMap(([agent, entry]) => {
    if (typeof entry === 'string' || entry.type !== 'text') return [];
    const complete = functions[agent];
    if (complete === undefined)
      throw new RecipeError('only the code of a recipe can name a function: frozen({ complete })', `assign.${agent}`);
    return [[agent, complete] as const];
  });
  return asked.length === 0 ? {} : { functions: Object.fromEntries(asked) };
}

function checkTeam(team: unknown): asserts team is Team {
  if (!isObject(team) || !isObject(team.agents) || typeof team.play !== 'function') {
    throw new RecipeError(`expected what defineTeam returns, got ${shown(team)}`, 'team');
  }
}

/** @throws RecipeError if a sink cannot receive events */
function checkSinks(sinks: unknown): void {
  if (sinks === undefined) return;
  if (!Array.isArray(sinks)) throw new RecipeError(`expected a list of sinks, got ${shown(sinks)}`, 'sinks');
  for (const [i, sink] of sinks.entries())
    if (!isObject(sink) || typeof sink.event !== 'function')
      throw new RecipeError(`expected an object with event(event), got ${shown(sink)}`, `sinks.${i}`);
}

/** The settings as plain data. @throws RecipeError for a function or a class instance, which cannot be recorded */
function plainPart(
  written: Omit<RecipeInput, 'team' | 'tasks' | 'use' | 'sinks'>,
  absolutePath: ResolveOptions['absolutePath'],
): Plain {
  try {
    return withAbsoluteModelPaths<Plain>(structuredClone({ ...written }), absolutePath);
  } catch (error) {
    throw new RecipeError(
      `only the team, the tasks, frozen({ complete }), plug-ins and sinks may hold functions (${messageOf(error)})`,
    );
  }
}

function withAbsoluteModelPaths<Settings>(settings: Settings, absolutePath: ResolveOptions['absolutePath']): Settings {
  if (absolutePath === undefined) return settings;
  const absolute = (path: unknown) =>
    typeof path === 'string' && /^\.\.?(?:[/\\]|$)/.test(path) ? absolutePath(path) : path;
  const keys: Readonly<Record<string, string>> = { checkpoint: 'path', lora: 'from' };
  const resolved = (value: unknown): unknown => {
    if (!isObject(value)) return value; // lists hold no models
    const ofPath = keys[String(value.type)];
    return Object.fromEntries(
      Object.entries(value).map(([key, inner]) => [key, key === ofPath ? absolute(inner) : resolved(inner)]),
    );
  };
  return resolved(settings) as Settings;
}

/**
 * The settings of policies after `--set assign=shared` or `separate`. If all former policies had equal settings, the
 * new policies get these settings. Otherwise the old settings stay, and the schema refuses them by the policy's name.
 */
function withMovedPolicies(tree: Plain, agents: readonly string[]): Plain {
  const { policies } = tree;
  if (!isObject(policies)) return tree;
  const names = policiesOf(completeAssignment(tree.assign, agents));
  const gone = Object.entries(policies).flatMap(([name, settings]) => (names.includes(name) ? [] : [settings]));
  if (new Set(gone.map((settings) => JSON.stringify(settings))).size !== 1) return tree;
  const moved = names.map((name) => [name, structuredClone(policies[name] ?? gone[0])]);
  return { ...tree, policies: Object.fromEntries(moved) };
}

/** Gives each agent and each policy its complete entry: the team's defaults, overridden by the recipe's settings. */
function withInherited(tree: Plain, team: Team, agents: readonly string[], lists: Lists): Plain {
  const { model } = tree;
  const assign = completeAssignment(tree.assign, agents);
  const estimator = sectionsOf(lists).advantage.safeParse(tree.advantage);
  const valued = estimator.success && needOf(estimator.data, lists.estimators) === 'values';
  const policies = withEntries(tree.policies, policiesOf(assign), (_, written) => policyEntry(model, valued, written));
  const settings = withEntries(tree.agents, agents, (agent, written) => agentEntry(team, agent, written));
  return { ...tree, ...warmStartEntry(tree.warmStart, policies), assign, policies, agents: settings };
}

/**
 * The warm start of adapters on pretrained models is each policy's own unless the recipe says otherwise: one adapter
 * that learned all agents' formats would begin each agent with the habits of the others.
 */
function warmStartEntry(written: unknown, policies: unknown): Plain {
  if (!isObject(written) || 'share' in written || !isObject(policies)) return {};
  const models = Object.values(policies).map((settings) => (isObject(settings) ? settings.model : undefined));
  const adapted = models.every(
    (model) => isObject(model) && model.type === 'lora' && isObject(model.base) && model.base.type === 'checkpoint',
  );
  return adapted ? { warmStart: { ...written, share: 'policy' } } : {};
}

/** A section with an entry for each name. If the value is not an object, the schema reports it. */
function withEntries(
  section: unknown,
  names: readonly string[],
  fill: (name: string, written: Plain) => Plain,
): unknown {
  if (section !== undefined && !isObject(section)) return section;
  const entries = { ...section };
  for (const name of names) {
    const written = entries[name] ?? {};
    entries[name] = isObject(written) ? fill(name, written) : written;
  }
  return entries;
}

function policyEntry(model: unknown, valued: boolean, written: Plain): Plain {
  const { critic = valued ? {} : undefined } = written;
  return {
    ...(model === undefined ? {} : { model: structuredClone(model) }),
    ...withOptimizer(written),
    ...(critic === undefined ? {} : { critic: isObject(critic) ? withOptimizer(critic) : critic }),
  };
}

function withOptimizer(settings: Plain): Plain {
  const { optimizer = {} } = settings;
  return { ...settings, optimizer: isObject(optimizer) ? { type: defaultOptimizer, ...optimizer } : optimizer };
}

function agentEntry(team: Team, agent: string, written: Plain): Plain {
  const defaults = team.agents[agent];
  const sampling = written.sampling ?? {};
  return {
    invalidPenalty: defaults?.invalidPenalty ?? 0,
    ...written,
    sampling: isObject(sampling) ? { ...defaultSampling, ...defaults?.sampling, ...sampling } : sampling,
  };
}

function completeAssignment(assign: unknown, agents: readonly string[]): Plain {
  if (isObject(assign)) {
    parseAt(assignmentMap(agents, assign), assign, ['assign']);
    return assign;
  }
  const word = assign === undefined ? 'separate' : parseAt(assignmentWord, assign, ['assign']);
  return Object.fromEntries(agents.map((agent) => [agent, word === 'shared' ? 'shared' : agent]));
}

function policiesOf(assign: unknown): string[] {
  const named = isObject(assign) ? Object.values(assign).filter((entry) => typeof entry === 'string') : [];
  return [...new Set(named)];
}

/** Checks that no setting requires a frozen agent to train. @throws RecipeError with the setting */
function checkFrozen({ assign, policies, agents, evaluation }: Plain, { allFrozen = false }: ResolveOptions): void {
  if (!isObject(assign)) return;
  const trained = policiesOf(assign);
  if (trained.length === 0 && !allFrozen)
    throw new RecipeError('every agent is frozen: there is nothing to train', 'assign');
  for (const [agent, entry] of Object.entries(assign)) {
    if (typeof entry === 'string') continue;
    if (trained.includes(agent)) {
      const others = Object.keys(assign).filter((other) => assign[other] === agent);
      const message = `'${agent}' is the name of a frozen agent; expected another name for the policy`;
      throw new RecipeError(message, `assign.${others[0]}`);
    }
    const frozen = `agent '${agent}' is frozen`;
    if (isObject(policies) && policies[agent] !== undefined)
      throw new RecipeError(`${frozen}: no policy of its trains`, `policies.${agent}`);
    const settings = isObject(agents) && isObject(agents[agent]) ? agents[agent] : {};
    if (settings.rewardWeight !== undefined)
      throw new RecipeError(`${frozen}: its turns teach nothing`, `agents.${agent}.rewardWeight`);
    if (!isObject(entry) || entry.type !== 'endpoint') continue;
    const { sampling, evaluationSampling } = settings;
    const shared = isObject(evaluation) ? evaluation.sampling : undefined;
    const apart = isObject(evaluationSampling) && evaluationSampling.topK !== undefined;
    for (const [section, sampled] of [
      [`agents.${agent}.sampling`, sampling],
      apart ? [`agents.${agent}.evaluationSampling`, evaluationSampling] : ['evaluation.sampling', shared],
    ] as const)
      if (isObject(sampled) && (sampled.topK ?? 0) !== 0)
        throw new RecipeError(
          "the protocol of endpoints has no top-k; expected 0, and the server's own field in the endpoint's body",
          `${section}.topK`,
        );
  }
}

function requireModels(tree: Plain, model: unknown): void {
  const { policies } = tree;
  if (!isObject(policies) || model !== undefined) return;
  for (const policy of policiesOf(tree.assign)) {
    const entry = policies[policy];
    if (isObject(entry) && entry.model === undefined) {
      throw new RecipeError(
        'is required: tinyDecoder({ ... }), checkpoint(path) or lora(base, { rank }), here or for every policy',
        'model',
      );
    }
  }
}

/**
 * The task sources of both splits.
 * @throws RecipeError if a value is not a task source, or if an override names a setting that the source does not have
 */
function resolveTasks(tasks: RecipeInput['tasks'], overrides: readonly Override[]): Recipe['tasks'] {
  const one = isSource(tasks);
  const written: Partial<Record<Split, unknown>> = one
    ? { train: tasks, test: tasks }
    : { ...tasks, test: joined(tasks?.test) };
  for (const { path } of overrides) {
    if (path[1] !== 'train' && path[1] !== 'test') {
      throw new RecipeError(
        `unknown key '${path[1] ?? ''}'${suggestion(path[1] ?? '', ['train', 'test'])}`,
        path.join('.'),
      );
    }
  }
  const source = (split: Split): TaskSource => {
    const given = written[split];
    if (!isSource(given)) throw new RecipeError(`expected a task source, got ${shown(given)}`, `tasks.${split}`);
    // If one source serves both splits, overrides of `train` apply to `test` too. Overrides of `test` come after them.
    const inherited = one && split === 'test' ? overrides.filter(({ path }) => path[1] === 'train') : [];
    return configured(given, split, [...inherited, ...overrides.filter(({ path }) => path[1] === split)]);
  };
  return { train: source('train'), test: source('test') };
}

function joined(test: unknown): unknown {
  if (isSource(test) || !isObject(test) || Object.keys(test).length === 0) return test;
  const sources = Object.entries(test).map(([name, source]) => {
    if (!isSource(source)) throw new RecipeError(`expected a task source, got ${shown(source)}`, `tasks.test.${name}`);
    return [name, source] as const;
  });
  return benchmarks(Object.fromEntries(sources));
}

function isSource(value: unknown): value is TaskSource {
  return isObject(value) && typeof value.load === 'function';
}

function configured(source: TaskSource, split: Split, overrides: readonly Override[]): TaskSource {
  if (overrides.length === 0) return source;
  const { settings } = source;
  const keys = Object.keys(settings ?? {});
  const inner = overrides.map(({ path, value }): Override => {
    const [key, ...rest] = path.slice(2);
    const at = `tasks.${split}`;
    if (key === undefined) throw new RecipeError('cannot be replaced from outside, only its settings can', at);
    if (!keys.includes(key)) throw new RecipeError(`unknown key '${key}'${suggestion(key, keys)}`, `${at}.${key}`);
    return { path: [key, ...rest], value };
  });
  if (settings === undefined || source.configure === undefined) return source;
  try {
    return source.configure(applyOverrides({ ...settings }, inner));
  } catch (error) {
    if (error instanceof RecipeError) throw new RecipeError(error.message, `tasks.${split}`);
    const faults = faultsOf(error);
    throw faults.length === 0 ? error : faultsError(faults, ['tasks', split]);
  }
}

/** The faults that a task source's own schema names in an error of zod's form, of any version; none for others. */
function faultsOf(error: unknown): Parameters<typeof faultsError>[0] {
  const issues: unknown = isObject(error) ? error.issues : undefined;
  if (!Array.isArray(issues)) return [];
  return issues
    .filter(isObject)
    .map(({ path, message }) => ({ path: Array.isArray(path) ? path : [], message: String(message) }));
}
