/** Smaller teams, derived from what a team and its recipe declare, and the recipe file of one of them. */
import { dirname, relative, sep } from 'node:path';
import { isOtherModel, wholeModel } from '@drmas/engine/model';
import type { Recipe, RecipeDefinition } from '../../../method/recipe.js';
import { type LoadedRecipe, shippedRecipes } from '../../../method/recipe-files.js';

/** What `drmas shape` can take from a team. */
export const CUTS = ['drop', 'limit', 'model', 'merge', 'freeze'] as const;
export type Cut = (typeof CUTS)[number];

type Entry = Recipe['assign'][string];
type Settings = Readonly<Record<string, unknown>>;

/** A smaller team, by what it changes. `null` removes a setting. */
export interface TeamVariant {
  readonly name: string;
  readonly cut: Cut;
  readonly assign?: Readonly<Record<string, Entry>>;
  readonly policies?: Readonly<Record<string, Settings>>;
  readonly limits?: Readonly<Record<string, number>>;
}

/** More policies than this are merged into one, but not in pairs. */
const MOST_PAIRED = 4;

/** The smaller teams that differ from a recipe's in one thing, and what the team does not allow, in sentences. */
export function teamVariants(recipe: Recipe): { readonly variants: TeamVariant[]; readonly notes: string[] } {
  const { team, assign, policies, limits, warmStart } = recipe;
  const notes: string[] = [];
  const agentsOf = (policy: string) => Object.keys(assign).filter((agent) => assign[agent] === policy);
  const given = (agents: readonly string[], entry: Entry) => Object.fromEntries(agents.map((agent) => [agent, entry]));
  const trained = Object.entries(policies);

  const drops = Object.entries(team.agents).flatMap(([agent, { absent }]): TeamVariant[] => {
    const entry = assign[agent];
    if (typeof entry === 'object' && entry.type === 'constant') return [];
    if (absent === undefined) notes.push(`the team needs ${agent}: it declares no \`absent\` text for it`);
    else if (Object.keys(assign).length > 1)
      return [{ name: `without ${agent}`, cut: 'drop', assign: given([agent], { type: 'constant', text: absent }) }];
    return [];
  });
  const caps = Object.entries({ ...team.limits, ...limits }).flatMap(([name, most = 1]) =>
    halvings(most).map((cap): TeamVariant => ({ name: `${name} ${cap}`, cut: 'limit', limits: { [name]: cap } })),
  );
  const models = trained.flatMap(([policy, { candidates = [] }]) =>
    candidates.map(
      (settings, i): TeamVariant => ({
        name: `smaller ${policy}${candidates.length > 1 ? ` ${i + 1}` : ''}`,
        cut: 'model',
        policies: { [policy]: { ...settings } },
      }),
    ),
  );
  const merges = mergedPolicies(trained).map(
    ([kept, ...others]): TeamVariant => ({
      name: `one policy for ${[kept, ...others].join('+')}`,
      cut: 'merge',
      assign: given(others.flatMap(agentsOf), kept),
    }),
  );
  const adapters = trained.flatMap(([policy, { agentAdapters }]): TeamVariant[] =>
    agentAdapters === undefined
      ? []
      : [{ name: `no adapters in ${policy}`, cut: 'merge', policies: { [policy]: { agentAdapters: null } } }],
  );
  const frozen = trained.flatMap(([policy, { model }]): TeamVariant[] => {
    if (trained.length < 2) return [];
    const whole = wholeModel(model);
    if (isOtherModel(whole)) return [];
    if (whole.type === 'tiny-decoder' && !('from' in whole) && warmStart === undefined) {
      notes.push(`${policy} must learn: its weights are random, and there is no warm start`);
      return [];
    }
    return [
      { name: `frozen ${policy}`, cut: 'freeze', assign: given(agentsOf(policy), { type: 'frozen', model: whole }) },
    ];
  });
  return { variants: [...drops, ...caps, ...models, ...merges, ...adapters, ...frozen], notes };
}

/** The halves of a limit, rounded up, down to 1. */
const halvings = (most: number): number[] => (most <= 1 ? [] : [Math.ceil(most / 2), ...halvings(Math.ceil(most / 2))]);

/** Policies with equal models that may be one: each pair of a few, and all of more than two. */
function mergedPolicies(trained: readonly (readonly [string, Recipe['policies'][string]])[]): [string, ...string[]][] {
  const keyOf = ({ model }: Recipe['policies'][string]) => JSON.stringify(model);
  return [...new Set(trained.map(([, settings]) => keyOf(settings)))].flatMap((key) => {
    const names = trained.flatMap(([name, settings]) => (keyOf(settings) === key ? [name] : []));
    const pairs =
      names.length > MOST_PAIRED
        ? []
        : names.flatMap((a, i) => names.slice(i + 1).map((b): [string, string] => [a, b]));
    return names.length > 2 ? [...pairs, names as [string, ...string[]]] : pairs;
  });
}

/** The variant as overrides of its recipe, after the overrides `set` of all runs. */
export function overridesOf(
  { assign = {}, policies = {}, limits = {} }: TeamVariant,
  recipe: Recipe,
  { input }: RecipeDefinition,
  set: readonly string[],
): string[] {
  const written = (place: string, there: unknown) =>
    there !== undefined || set.some((text) => text.startsWith(`${place}.`) || text.startsWith(`${place}=`));
  const all: Readonly<Record<string, Entry>> = { ...recipe.assign, ...assign };
  const gone = Object.keys(recipe.policies).filter((policy) => !Object.values(all).includes(policy));
  const secret = Object.values(all).some((entry) => typeof entry === 'object' && 'apiKey' in entry);
  const assigned = secret
    ? Object.entries(assign).map(([agent, entry]) => `assign.${agent}=${JSON.stringify(entry)}`)
    : [`assign=${JSON.stringify(all)}`];
  return [
    ...(Object.keys(assign).length === 0 ? [] : assigned),
    ...gone.flatMap((policy) =>
      written(`policies.${policy}`, (input.policies as Settings | undefined)?.[policy])
        ? [`policies.${policy}=null`]
        : [],
    ),
    ...notOfFrozen(assign).flatMap(([agent, keys]) => {
      const ofAgent = (input.agents as Readonly<Record<string, Settings>> | undefined)?.[agent];
      return keys
        .filter((key) => written(`agents.${agent}.${key}`, ofAgent?.[key]))
        .map((key) => `agents.${agent}.${key}=null`);
    }),
    ...Object.entries(policies).flatMap(([policy, settings]) =>
      Object.entries(settings).map(([key, value]) => `policies.${policy}.${key}=${JSON.stringify(value)}`),
    ),
    ...Object.entries(limits).map(([name, value]) => `limits.${name}=${value}`),
  ];
}

/** The settings that an agent loses with its policy: a weight of its rewards, and a constant's prices. */
const notOfFrozen = (assign: Readonly<Record<string, Entry>>) =>
  Object.entries(assign).flatMap(([agent, entry]) => {
    if (typeof entry === 'string') return [];
    return [[agent, entry.type === 'constant' ? ['rewardWeight', 'callCost', 'tokenCost'] : ['rewardWeight']] as const];
  });

/**
 * The text of a recipe file: the recipe with the variant's changes. Models are written out, because their paths may be
 * relative to the file of the recipe.
 * @param resolved The recipe of the variant
 * @param path Where the file will be
 */
export function recipeText(
  variant: TeamVariant,
  resolved: Recipe,
  { source, definition: { input } }: Pick<LoadedRecipe, 'source' | 'definition'>,
  path: string,
): string {
  const { assign = {}, policies = {} } = variant;
  const nearby = relative(dirname(path), source).split(sep).join('/');
  const from = shippedRecipes().includes(source)
    ? `drmas/recipes/${source}/recipe`
    : nearby.startsWith('.')
      ? nearby
      : `./${nearby}`;
  const isMap = typeof input.assign === 'object';
  // Functions and keys of endpoints stay in the code of the recipe.
  const entries = Object.entries(resolved.assign).filter(
    ([, entry]) => typeof entry === 'string' || (entry.type !== 'text' && entry.type !== 'endpoint'),
  );
  const json = (value: unknown) => JSON.stringify(value ?? undefined) ?? 'undefined';
  const lines = (indent: string, rows: readonly (readonly [string, string])[]) =>
    rows.map(([key, value]) => `${indent}${JSON.stringify(key)}: ${value},`);
  const changedAgents = notOfFrozen(assign).map(([agent, keys]) => {
    const removed = keys.map((key) => `${key}: undefined`).join(', ');
    return [agent, `{ ...whole.input.agents?.[${json(agent)}], ${removed} }`] as const;
  });
  return [
    `/** The recipe of ${JSON.stringify(from)} with one change: ${variant.name}. \`drmas shape\` wrote it. */`,
    "import { defineRecipe } from 'drmas';",
    `import whole from ${JSON.stringify(from)};`,
    '',
    'export default defineRecipe({',
    '  ...whole.input,',
    `  name: ${json(resolved.name)},`,
    '  assign: {',
    ...(isMap ? ['    ...(whole.input.assign as object),'] : []),
    ...lines(
      '    ',
      entries.map(([agent, entry]) => [agent, json(entry)]),
    ),
    '  },',
    '  policies: {',
    ...lines(
      '    ',
      Object.entries(resolved.policies).map(([policy, { model }]) => {
        const changes = Object.entries(policies[policy] ?? {}).map(([key, value]) => `${key}: ${json(value)}`);
        const settings = [`...whole.input.policies?.[${json(policy)}]`, `model: ${json(model)}`, ...changes];
        return [policy, `{ ${settings.join(', ')} }`];
      }),
    ),
    '  },',
    ...(changedAgents.length === 0
      ? []
      : ['  agents: {', '    ...whole.input.agents,', ...lines('    ', changedAgents), '  },']),
    ...(resolved.limits === undefined ? [] : [`  limits: ${json(resolved.limits)},`]),
    '} as never);',
    '',
  ].join('\n');
}
