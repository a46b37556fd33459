/** Resolves a recipe: from its definition and `--set` overrides to checked values with all defaults filled in. */

import type { CompleteText } from '@drmas/engine/endpoints';
import { isObject, messageOf, parseAt, RecipeError, requireKnownKeys, shown } from '@drmas/engine/errors';
import { modelSchema } from '@drmas/engine/model';
import type { Team } from '../../teams/index.js';
import { openEstimator } from '../advantage/estimators/index.js';
import { checkFrozen, checkTrainable, requireModels } from './assignment-checks.js';
import type { RecipeDefinition, RecipeInput } from './define.js';
import { policiesOf, withInherited, withMovedPolicies } from './inherited.js';
import { keyVariablesOf, type Lists } from './lists.js';
import { applyOverrides, type Override, type Plain, parseOverride, removalsOfNothing } from './overrides.js';
import { withPlugins } from './plugins/plugins.js';
import { checkLosses } from './policy-losses.js';
import type { Recipe, RecipeCode } from './recipe.js';
import { defaultChoices, settingsSchema } from './recipe-schema.js';
import { requireNoneRemoved } from './removed-settings.js';
import { resolveTasks } from './resolve-tasks.js';

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
  const overrides = overridesByPart(options.overrides ?? [], lists);
  checkSinks(sinks);
  checkTeam(team);
  const agents = Object.keys(team.agents);

  // 1. What the recipe says, and the overrides of what agents and policies may inherit.
  const base = { name: options.name ?? team.name, ...defaultChoices, ...plainPart(given, options.absolutePath) };
  const applied = applyOverrides(base, overrides.shared);
  const reassigned = overrides.shared.some(({ path, value }) => path.join() === 'assign' && typeof value === 'string');
  const tree = withoutIdleWarmStart(reassigned ? withMovedPolicies(applied, agents) : applied);
  checkTrainable(tree.model);
  if (tree.model !== undefined) parseAt(modelSchema, tree.model, ['model']);

  // 2. The complete entry of each agent and policy, and the overrides of single ones.
  const { model, ...complete } = withInherited(tree, team, agents, lists);
  const changed = applyOverrides(complete, overrides.single);
  requireModels(changed, model);
  requireNoneRemoved(changed);
  checkFrozen(changed, options);

  // 3. The schema, which fills in all other defaults.
  const policies = policiesOf(changed.assign);
  const schema = settingsSchema(lists, agents, policies, changed.assign, Object.keys(team.limits ?? {}));
  const settings = parseAt(schema, changed);
  checkRemovals(schema, { ...changed, model }, [
    ...removalsOfNothing(base, overrides.shared),
    ...removalsOfNothing(applyOverrides(complete, overrides.single.filter(sets)), overrides.single),
  ]);
  checkLosses(settings, lists);
  return {
    ...settings,
    team: withLimits(team, settings.limits),
    tasks: resolveTasks(tasks, overrides.tasks),
    code: options.code,
    lists,
    estimator: openEstimator(settings.advantage, lists.estimators),
    ...(sinks === undefined ? {} : { sinks }),
    ...functionsIn(settings.assign, functions),
  };
}

/** The overrides by when they apply: before agents and policies inherit, after it, or to the sources of tasks. */
function overridesByPart(texts: readonly string[], lists: Lists) {
  const keys = keyVariablesOf(lists);
  const all = texts.map((text) => parseOverride(text, keys));
  const of = (part: ReturnType<typeof partOf>) => all.filter((override) => partOf(override) === part);
  return { shared: of('shared'), single: of('single'), tasks: of('tasks') };
}

function partOf({ path: [section] }: Override): 'shared' | 'single' | 'tasks' {
  if (section === 'tasks') return 'tasks';
  return section === 'policies' || section === 'agents' ? 'single' : 'shared';
}

const sets = ({ value }: Override): boolean => value !== null;

/**
 * Checks the keys that `null` removed although there was none, since the parsed settings do not have them. An override
 * may remove what an earlier one has set.
 * @throws RecipeError if there is no such setting
 */
function checkRemovals(schema: ReturnType<typeof settingsSchema>, tree: Plain, removals: readonly Override[]): void {
  for (const { path } of removals) {
    const written = applyOverrides(tree, [{ path, value: 0 }]);
    requireNoneRemoved(written);
    requireKnownKeys(schema.extend({ model: modelSchema.optional() }), written);
  }
}

const withLimits = (team: Team, limits: Recipe['limits']): Team =>
  limits === undefined ? team : { ...team, limits: { ...team.limits, ...(limits as Record<string, number>) } };

function withoutIdleWarmStart({ warmStart, ...tree }: Plain): Plain {
  const isIdle = warmStart === undefined || (isObject(warmStart) && warmStart.steps === 0);
  return isIdle ? tree : { ...tree, warmStart };
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
    const place = functionIn(written).join('.');
    const found = place === '' ? messageOf(error) : 'got a function';
    throw new RecipeError(
      `only the team, the tasks, frozen({ complete }), plug-ins and sinks may hold functions: ${found}`,
      place,
    );
  }
}

/** The path of the first function in plain data; empty if there is none. The data may hold itself. */
function functionIn(value: unknown, seen = new Set<unknown>()): string[] {
  if (typeof value !== 'object' || value === null || seen.has(value)) return [];
  seen.add(value);
  for (const [key, inner] of Object.entries(value)) {
    const below = functionIn(inner, seen);
    if (typeof inner === 'function' || below.length > 0) return [key, ...below];
  }
  return [];
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
