/** Resolves a recipe: from its definition and `--set` overrides to checked values with all defaults filled in. */
import { dirname, isAbsolute, resolve } from 'node:path';
import { estimatorSchema, needOf } from '../advantage/estimators/index.js';
import { messageOf, RecipeError } from '../core/errors.js';
import type { TaskSource } from '../core/task.js';
import { isObject } from '../core/validation/objects.js';
import { benchmarks } from '../tasks/benchmarks.js';
import type { Team } from '../teams/team.js';
import { modelSchema } from './choices.js';
import type { RecipeDefinition, RecipeInput } from './define.js';
import { parseAt, shown, suggestion } from './explain.js';
import { defaultOptimizer } from './learning.js';
import { applyOverrides, type Override, type Plain, parseOverride } from './overrides.js';
import { checkLosses } from './policy-losses.js';
import type { Recipe, RecipeCode } from './recipe.js';
import { assignmentMap, assignmentWord, defaultChoices, settingsSchema } from './recipe-schema.js';

/** The sampling settings that neither the recipe nor the team's agent sets. */
const defaultSampling = { temperature: 1, topP: 1, topK: 0, maxTokens: 256 };

export interface ResolveOptions {
  /** The overrides, each as `path.to.key=value`, in order. */
  readonly overrides?: readonly string[];
  /** The default of the recipe's name. */
  readonly name?: string;
  /** Where the definition was loaded from. */
  readonly code?: RecipeCode | undefined;
  /** Whether there may be nothing to train: where every agent is frozen, others than weights can still be improved. */
  readonly allFrozen?: boolean | undefined;
}

/** Resolves a recipe. @throws RecipeError with the dotted path of the value that is wrong and what was expected */
export function resolveRecipe(definition: RecipeDefinition, options: ResolveOptions = {}): Recipe {
  const overrides = (options.overrides ?? []).map(parseOverride);
  const { team, tasks, sinks, ...written } = definition.input;
  checkSinks(sinks);
  checkTeam(team);
  const agents = Object.keys(team.agents);
  // Policies and agents inherit from `model` and from the team, so their overrides apply after the inherited values are
  // filled in.
  const inherits = (override: Override) => override.path[0] === 'policies' || override.path[0] === 'agents';
  const ofTasks = (override: Override) => override.path[0] === 'tasks';
  const first = overrides.filter((override) => !inherits(override) && !ofTasks(override));
  const defaults = { name: options.name ?? team.name, ...defaultChoices };
  const applied = applyOverrides({ ...defaults, ...plainPart(written, options.code) }, first);
  const reassigned = first.some(({ path, value }) => path.join() === 'assign' && typeof value === 'string');
  const tree = reassigned ? withMovedPolicies(applied, agents) : applied;
  if (tree.model !== undefined) parseAt(modelSchema, tree.model, ['model']);
  const { model, ...complete } = withInherited(tree, team, agents);
  const changed = applyOverrides(complete, overrides.filter(inherits));
  requireModels(changed, model);
  checkFrozen(changed, options);
  const settings = parseAt(settingsSchema(agents, policiesOf(changed.assign), changed.assign), changed);
  checkLosses(settings);
  return {
    ...settings,
    team,
    tasks: resolveTasks(tasks, overrides.filter(ofTasks)),
    code: options.code,
    ...(sinks === undefined ? {} : { sinks }),
  };
}

function checkTeam(team: unknown): asserts team is Team {
  if (!isObject(team) || !isObject(team.agents) || typeof team.play !== 'function') {
    throw new RecipeError(`expected what defineTeam returns, got ${shown(team)}`, 'team');
  }
}

/** @throws RecipeError for what cannot receive events */
function checkSinks(sinks: unknown): void {
  if (sinks === undefined) return;
  if (!Array.isArray(sinks)) throw new RecipeError(`expected a list of sinks, got ${shown(sinks)}`, 'sinks');
  for (const [i, sink] of sinks.entries())
    if (!isObject(sink) || typeof sink.event !== 'function')
      throw new RecipeError(`expected an object with event(event), got ${shown(sink)}`, `sinks.${i}`);
}

/** The settings as plain data. @throws RecipeError for a function or a class instance, which cannot be recorded */
function plainPart(written: Omit<RecipeInput, 'team' | 'tasks' | 'sinks'>, code: RecipeCode | undefined): Plain {
  try {
    return withModelsBeside<Plain>(structuredClone({ ...written }), code);
  } catch (error) {
    throw new RecipeError(`only the team, the tasks and sinks may hold functions (${messageOf(error)})`);
  }
}

/**
 * Settings in which the paths of models that begin with `./` or `../` are absolute: they lie beside the recipe's file,
 * wherever the program was started. Of a recipe without a file they start at the working directory.
 */
function withModelsBeside<Settings>(settings: Settings, code: RecipeCode | undefined): Settings {
  if (code === undefined || !isAbsolute(code.source)) return settings;
  const directory = dirname(code.source);
  const placed = (path: unknown) =>
    typeof path === 'string' && /^\.\.?(?:[/\\]|$)/.test(path) ? resolve(directory, path) : path;
  /** The key of the path in each kind of model. */
  const keys: Readonly<Record<string, string>> = { checkpoint: 'path', lora: 'from' };
  const place = (value: unknown): unknown => {
    if (!isObject(value)) return value; // lists hold no models
    const ofPath = keys[String(value.type)];
    return Object.fromEntries(
      Object.entries(value).map(([key, inner]) => [key, key === ofPath ? placed(inner) : place(inner)]),
    );
  };
  return place(settings) as Settings;
}

/**
 * The settings of policies after `--set assign=shared` or `separate`: those of the policies that are no more pass to
 * those that are new, where they are all the same. Settings that differ stay, and are refused by the policy's name.
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

/** Gives every agent and every policy its complete entry: the team's defaults, overridden by the recipe's settings. */
function withInherited(tree: Plain, team: Team, agents: readonly string[]): Plain {
  const { model } = tree;
  const assign = completeAssignment(tree.assign, agents);
  const estimator = estimatorSchema.safeParse(tree.advantage);
  const valued = estimator.success && needOf(estimator.data) === 'values';
  const policies = withEntries(tree.policies, policiesOf(assign), (_, written) => policyEntry(model, valued, written));
  const settings = withEntries(tree.agents, agents, (agent, written) => agentEntry(team, agent, written));
  return { ...tree, assign, policies, agents: settings };
}

/** A section with an entry for every name. A value that is not a section is left for the schema to report. */
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

/** The settings with the default type of optimiser where they name none. */
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

/** The assignment as a map from every agent. */
function completeAssignment(assign: unknown, agents: readonly string[]): Plain {
  if (isObject(assign)) {
    parseAt(assignmentMap(agents, assign), assign, ['assign']);
    return assign;
  }
  const word = assign === undefined ? 'separate' : parseAt(assignmentWord, assign, ['assign']);
  return Object.fromEntries(agents.map((agent) => [agent, word === 'shared' ? 'shared' : agent]));
}

/** The policies that train, each once. */
function policiesOf(assign: unknown): string[] {
  const named = isObject(assign) ? Object.values(assign).filter((entry) => typeof entry === 'string') : [];
  return [...new Set(named)];
}

/** Checks that no setting asks frozen agents to train. @throws RecipeError naming the setting */
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

type Split = 'train' | 'test';

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
    // Where one source serves both splits, overrides of `train` apply to `test` too, unless `test` has its own.
    const inherited = one && split === 'test' ? overrides.filter(({ path }) => path[1] === 'train') : [];
    return configured(given, split, [...inherited, ...overrides.filter(({ path }) => path[1] === split)]);
  };
  return { train: source('train'), test: source('test') };
}

/** Joins several benchmarks by name into one source. */
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
    throw error;
  }
}
