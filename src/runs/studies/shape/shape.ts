/** The smallest team that is as good: smaller teams train beside the whole one, with equal seeds and one warm start. */
import { join } from 'node:path';
import { messageOf, RecipeError, RunError } from '@drmas/engine/errors';
import { type Price, priced } from '@drmas/engine/host';
import { mean } from '@drmas/engine/math';
import { nodeFiles } from '@drmas/engine/platform';
import { pricesOf, type Recipe, type RecipeDefinition } from '../../../method/recipe.js';
import { codeOf } from '../../../method/recipe-files.js';
import { defaultRunPath, RunDirectory } from '../../../method/store.js';
import { hasScore, type RunSummary } from '../../analysis/ablation-summary.js';
import { figureText } from '../../analysis/svg.js';
import { resolveRecipe } from '../../composition/resolve-recipe.js';
import { prepareTasks } from '../../run/open-run.js';
import { load } from '../../run/request.js';
import type { RunPlace } from '../../run/start-run.js';
import { type AblationPlan, ablateIn, type StudyOptions } from '../ablation/ablate.js';
import type { PlannedRun } from '../ablation/ablation-plan.js';
import { planRun } from '../plan/dry-run.js';
import { CUTS, type Cut, overridesOf, recipeText, type TeamVariant, teamVariants } from './team-variants.js';
import { type Compared, droppedAfter, judge, type Rule, type Verdict } from './verdict.js';

/** The name of the whole team among the variants. */
const WHOLE = 'whole team';
const DEFAULT_PAIRS = 5;

export interface ShapeOptions
  extends Omit<StudyOptions, 'vary' | 'variants' | 'baseline' | 'parts' | 'skip' | 'margin' | 'onStart'> {
  /** The loss of score that is accepted, 0..1. */
  readonly margin: number;
  /** What is taken from the team. Default: all that it allows. */
  readonly cuts?: readonly string[] | undefined;
  /** Only the smaller teams with these names. */
  readonly teams?: readonly string[] | undefined;
  /** Forecasts the seconds of a run of the whole team. Default: there is no forecast of time. */
  readonly forecast?: ((recipe: Recipe) => Promise<number | undefined>) | undefined;
  readonly onStart?: (plan: ShapePlan) => void;
}

/** The study before its runs begin. */
export interface ShapePlan extends AblationPlan {
  readonly variants: readonly string[];
  /** What the team does not allow, in sentences. */
  readonly notes: readonly string[];
  /** The forecast for all runs, without warm starts. Absent if there is none. */
  readonly seconds?: number;
}

/** A team of the study, with means over the pairs. */
export interface ShapedTeam {
  readonly name: string;
  readonly cut?: Cut;
  readonly runs: number;
  /** avg@k of the last evaluation, 0..1. */
  readonly score: number;
  /** Tokens that its agents read and wrote in an episode of the last evaluation. */
  readonly tokens: number;
  /** Seconds of an episode of the last evaluation, on this machine beside the other runs. */
  readonly seconds: number;
  /** The price of an episode in the study's unit. */
  readonly price: number;
  /** Trained parameters. */
  readonly trained: number;
}

export interface Shape {
  /** Contains the runs, shape.json, shape.svg and, if a smaller team was chosen, recipe.ts. */
  readonly directory: string;
  readonly recipe: string;
  readonly margin: number;
  /**
   * `currency`: of the recipe's prices. `operations`: two floating-point operations for each parameter and token.
   * `tokens`: if neither prices nor sizes of all models are known.
   */
  readonly unit: 'currency' | 'operations' | 'tokens';
  readonly whole: ShapedTeam;
  readonly variants: readonly (ShapedTeam & Verdict)[];
  readonly notes: readonly string[];
  /** The cheapest team that is shown to be as good. Absent if no smaller team is. */
  readonly chosen?: string;
  /** The recipe file of the chosen team. */
  readonly file?: string;
  /** The overrides of the study that the file does not contain. */
  readonly set: readonly string[];
}

/**
 * Trains smaller teams beside the whole team, and finds the cheapest whose loss of score is shown to be below a margin.
 * To resume, call it again with the same directory.
 * @throws RecipeError, TaskError, RunError if the request is wrong, before anything is created; the signal's reason if
 *   interrupted
 */
export async function shapeTeam(
  place: RunPlace,
  source: string | RecipeDefinition,
  { margin, cuts = CUTS, teams: wanted, forecast, onStart, ...options }: ShapeOptions,
): Promise<Shape> {
  const { set = [], seeds = DEFAULT_PAIRS, firstSeed = 1 } = options;
  if (!(margin > 0 && margin < 1)) throw new RecipeError('expected more than 0 and less than 100 points', 'margin');
  if (seeds < 2) throw new RecipeError(`expected at least 2 pairs, got ${seeds}`, 'seeds');
  for (const cut of cuts)
    if (!CUTS.some((known) => known === cut))
      throw new RecipeError(`no cut '${cut}'; expected some of ${CUTS.join(', ')}`, 'cuts');
  const loaded = await load(source);
  const { definition, name } = loaded;
  const resolve = (overrides: readonly string[]) =>
    resolveRecipe(definition, { overrides: [...set, ...overrides], name, code: codeOf(loaded) });
  const base = resolve([]);
  const tasks = await prepareTasks(base);
  const derived = teamVariants(base);
  const notes = [...derived.notes];
  const teams: (TeamVariant & Prepared & { readonly overrides: readonly string[] })[] = [];
  const isWanted = ({ name, cut }: TeamVariant) => cuts.includes(cut) && wanted?.includes(name) !== false;
  for (const variant of derived.variants.filter(isWanted)) {
    try {
      const overrides = overridesOf(variant, base, definition, set);
      const recipe = resolve(overrides);
      teams.push({ ...variant, overrides, recipe, tasks: await prepareTasks(recipe) });
    } catch (error) {
      notes.push(`${variant.name}: ${messageOf(error)}`);
    }
  }
  if (teams.length === 0) throw new RecipeError(`no smaller team follows from the recipe: ${notes.join('; ')}`);

  const episodes = Math.min(base.evaluation.tasks, tasks.test.size) * base.evaluation.samples;
  const rule: Rule = { margin, pairs: seeds, episodes };
  const warmStartSeed = options.warmStartSeed ?? base.warmStart?.seed;
  const wholeSizes = await sizesOf({ recipe: base, tasks });
  const unit = unitOf(base, wholeSizes);
  const sizes = await Promise.all(teams.map(sizesOf));
  const oneRun = await forecast?.(base);
  const variants = Object.fromEntries([[WHOLE, []], ...teams.map(({ name, overrides }) => [name, overrides] as const)]);
  const { directory, runs } = await ablateIn(place, source, {
    ...options,
    ...{ seeds, variants, margin, run: options.run ?? (await defaultRunPath(`${name}-shape`)) },
    ...(warmStartSeed === undefined ? {} : { warmStartSeed }),
    skip: ({ variant, seed }: PlannedRun, ended) =>
      variant !== WHOLE && droppedAfter(differencesOf(ended, variant, firstSeed, seed), rule) !== undefined,
    onStart: (plan) => {
      const seconds = oneRun === undefined ? {} : { seconds: (oneRun * plan.runs.length) / plan.parallel };
      onStart?.({ ...plan, variants: teams.map((team) => team.name), notes, ...seconds });
    },
  });

  const last = firstSeed + seeds;
  const shaped = async (variant: string, recipe: Recipe, known: Sizes) => {
    const own = runs.filter((run) => run.variant === variant && run.status === 'completed' && hasScore(run));
    const rates = ratesOf(unit, [recipe, known], [base, wholeSizes]);
    const uses = await Promise.all(own.map((run) => useOf(join(directory, run.name), rates)));
    const over = (pick: (use: (typeof uses)[number]) => number) => mean(uses.map(pick));
    return {
      ...{ name: variant, runs: own.length, score: mean(own.map(({ score }) => score)) },
      ...{ tokens: over(({ tokens }) => tokens), seconds: over(({ seconds }) => seconds) },
      ...{ price: over(({ price }) => price), trained: known.trained },
    };
  };
  const whole = await shaped(WHOLE, base, wholeSizes);
  const rows = await Promise.all(
    teams.map(async ({ name: variant, cut, recipe }, i) => ({
      ...(await shaped(variant, recipe, sizes[i] as Sizes)),
      cut,
      differences: differencesOf(runs, variant, firstSeed, last),
      complete: !runs.some((run) => run.variant === variant && !(run.status === 'completed' && hasScore(run))),
    })),
  );
  const { verdicts, chosen } = judge(rows satisfies Compared[], whole, rule);
  const winner = teams.find((team) => team.name === chosen);
  const file = winner === undefined || loaded.codeHash === '' ? undefined : join(directory, 'recipe.ts');
  if (file !== undefined && winner !== undefined)
    await nodeFiles.replace(file, recipeText(winner, winner.recipe, loaded, file));
  const shape: Shape = {
    ...{ directory, recipe: name, margin, unit, whole },
    variants: rows.map(({ differences: _, complete: __, ...row }, i) => ({ ...row, ...(verdicts[i] as Verdict) })),
    notes,
    ...(chosen === undefined ? {} : { chosen }),
    ...(file === undefined ? {} : { file }),
    set: set.filter((text) => !/^\s*(assign|limits)\b/.test(text) && !isOfGonePolicy(text, winner?.recipe ?? base)),
  };
  await nodeFiles.replace(join(directory, 'shape.json'), `${JSON.stringify(shape, null, 2)}\n`);
  await nodeFiles.replace(join(directory, 'shape.svg'), figureOf(shape));
  return shape;
}

function isOfGonePolicy(override: string, { policies }: Recipe): boolean {
  const policy = /^\s*policies\.([^.=]+)/.exec(override)?.[1];
  return policy !== undefined && !(policy in policies);
}

/** The differences between a variant and the whole team in seeds from `first` to before `end`, up to the first gap. */
function differencesOf(runs: readonly RunSummary[], variant: string, first: number, end: number): number[] {
  const scoreOf = (name: string, seed: number) =>
    runs.find((run) => run.variant === name && run.seed === seed && run.status === 'completed' && hasScore(run))?.score;
  const differences: number[] = [];
  for (let seed = first; seed < end; seed++) {
    const [score, whole] = [scoreOf(variant, seed), scoreOf(WHOLE, seed)];
    if (score === undefined || whole === undefined) break;
    differences.push(score - whole);
  }
  return differences;
}

/** A recipe whose tasks have been read. */
interface Prepared {
  readonly recipe: Recipe;
  readonly tasks: Awaited<ReturnType<typeof prepareTasks>>;
}

/** The parameters of a recipe's models: those that train, and all of each agent's model if they are known. */
interface Sizes {
  readonly trained: number;
  readonly ofAgent: Readonly<Record<string, number | undefined>>;
}

async function sizesOf({ recipe, tasks }: Prepared): Promise<Sizes> {
  const { policies } = await planRun(recipe, tasks);
  const trained = Object.values(policies).reduce((sum, plan) => sum + (plan?.trained ?? 0), 0);
  const agents = Object.entries(recipe.assign).map(([agent, entry]) => [
    agent,
    typeof entry === 'string' ? policies[entry]?.whole : undefined,
  ]);
  return { trained, ofAgent: Object.fromEntries(agents) };
}

/** The unit in which a team and its variants can all be priced. */
function unitOf(whole: Recipe, { ofAgent }: Sizes): Shape['unit'] {
  const { assign } = whole;
  const paid = Object.keys(assign).filter((agent) => !isConstant(assign[agent]));
  const every = (known: Readonly<Record<string, unknown>>) => paid.every((agent) => known[agent] !== undefined);
  return every(pricesOf(whole)) ? 'currency' : every(ofAgent) ? 'operations' : 'tokens';
}

const isConstant = (entry: Recipe['assign'][string] | undefined) =>
  typeof entry === 'object' && entry.type === 'constant';

/** The price of a million tokens of each agent. An agent that a variant freezes costs what its policy did. */
function ratesOf(unit: Shape['unit'], [variant, sizes]: readonly [Recipe, Sizes], whole: readonly [Recipe, Sizes]) {
  const [own, before] = [pricesOf(variant), pricesOf(whole[0])];
  const flat = (rate: number): Price => ({ read: rate, write: rate, train: 0 });
  const rateOf = (agent: string): Price | undefined => {
    if (unit === 'currency') return own[agent] ?? before[agent];
    return flat(unit === 'tokens' ? 1e6 : 2e6 * (sizes.ofAgent[agent] ?? whole[1].ofAgent[agent] ?? 0));
  };
  return Object.fromEntries(Object.keys(variant.assign).map((agent) => [agent, rateOf(agent)]));
}

/** The tokens, seconds and price of an episode in the last evaluation of a run. */
async function useOf(path: string, rates: Readonly<Record<string, Price | undefined>>) {
  const events = await (await RunDirectory.open(path)).events();
  const last = events.findLast((event) => event.type === 'evaluation');
  if (last?.type !== 'evaluation') throw new RunError(`${path} has no evaluation`);
  const episodes = last.tasks * last.samples;
  const spent = Object.entries(last.agents).flatMap(([agent, { tokens }]) =>
    tokens === undefined ? [] : [priced(tokens, rates[agent])],
  );
  const total = (pick: (one: (typeof spent)[number]) => number) =>
    spent.reduce((sum, one) => sum + pick(one), 0) / episodes;
  return {
    tokens: total(({ tokens: { read, written } }) => read + written),
    seconds: last.seconds / episodes,
    price: total(({ cost = 0 }) => cost),
  };
}

/** The score of each team against its price, with the interval of its difference to the whole team. */
function figureOf({ recipe, margin, whole, variants, chosen }: Shape): string {
  const share = (price: number) => (100 * price) / whole.price;
  const points = (teams: readonly (ShapedTeam & Partial<Verdict>)[]) =>
    teams.map(({ price, score, interval }) => ({
      ...{ x: share(price), y: 100 * score },
      ...(interval && { low: 100 * (whole.score + interval.low), high: 100 * (whole.score + interval.high) }),
    }));
  const named = (verdict: Verdict['verdict']) =>
    points(variants.filter((team) => team.verdict === verdict && team.name !== chosen));
  const series = [
    { name: WHOLE, points: points([whole]) },
    ...(chosen === undefined
      ? []
      : [{ name: `chosen: ${chosen}`, points: points(variants.filter(({ name }) => name === chosen)) }]),
    { name: 'as good, but not cheaper', points: named('shown') },
    { name: 'not shown as good', points: named('open') },
    { name: 'dropped', points: named('dropped') },
  ];
  return figureText({
    title: `${recipe}: score of smaller teams against their price`,
    series: series.filter(({ points: some }) => some.length > 0),
    x: { label: 'price of an episode, % of the whole team', include: [0, 100] },
    y: { label: 'score, %', reference: 100 * (whole.score - margin) },
  });
}
