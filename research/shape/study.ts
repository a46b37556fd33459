/**
 * The study that a command `shape` made: smaller teams train beside the whole one, pair by pair. Those that are shown
 * to lose too much are dropped, and the cheapest whose loss is shown to be below the margin is chosen.
 */
import { join } from 'node:path';
import { mean } from '@drmas/engine/math';
import type { Recipe, RecipeDefinition } from '../../src/method/recipe.js';
import { RunDirectory } from '../../src/method/store.js';
import { prepareTasks } from '../../src/runs/run/open/prepare-tasks.js';
import { planRun } from '../../src/runs/studies/plan/dry-run.js';
import { ablate } from '../../src/runs/studies.js';
import { droppedAfter, judge, type Verdict } from './verdict.js';

const WHOLE = 'whole team';

export interface StudyOptions {
  /** The overrides of each smaller team, by its name. */
  readonly smaller: Readonly<Record<string, readonly string[]>>;
  /** Overrides of all teams. */
  readonly set?: readonly string[];
  readonly pairs: number;
  readonly firstSeed: number;
  /** The seed of one warm start for all runs, if the recipe has a warm start. */
  readonly warmStartSeed?: number;
  /** The accepted loss of score, 0..1. */
  readonly margin: number;
  /** An empty folder for the runs. */
  readonly folder: string;
}

/** Means over the runs of a team. */
interface TeamUse {
  readonly runs: number;
  readonly score: number;
  /** Tokens that its agents read and wrote in an episode of the last evaluation. */
  readonly tokens: number;
  /** Floating-point operations of an episode: two for each parameter and token. */
  readonly price: number;
  /** Trained parameters. */
  readonly trained: number;
}

export interface Study {
  readonly whole: TeamUse;
  readonly variants: readonly (TeamUse & Verdict & { readonly differences: readonly number[] })[];
  readonly chosen: string | undefined;
}

interface EndedRun extends Omit<TeamUse, 'runs'> {
  readonly team: string;
  readonly episodes: number;
}

/** Trains the teams. It ends early if each smaller one has been dropped. @throws Error if a run fails */
export async function studyOf(recipe: string | RecipeDefinition, options: StudyOptions): Promise<Study> {
  const { smaller, pairs, firstSeed, margin, folder, set = [], ...rest } = options;
  const all: EndedRun[] = [];
  const of = (team: string) => all.filter((run) => run.team === team);
  const differencesOf = (team: string) => of(team).map(({ score }, i) => score - (of(WHOLE)[i]?.score ?? Number.NaN));
  const rule = () => ({ margin, pairs, episodes: all[0]?.episodes ?? 1 });
  let left = Object.keys(smaller);
  for (let i = 0; i < pairs && left.length > 0; i++) {
    const recipes = new Map<string, Recipe>();
    const variants = Object.fromEntries([[WHOLE, []], ...left.map((team) => [team, smaller[team] ?? []] as const)]);
    const { directory, runs } = await ablate(recipe, {
      ...rest,
      ...{ variants, set, seeds: 1, firstSeed: firstSeed + i, run: join(folder, `pair-${i}`) },
      ...{ threads: 1, parallel: 1 },
      onStart: (plan) => plan.runs.forEach((run) => void recipes.set(run.variant, run.recipe)),
    });
    for (const { name, variant, status, score, message } of runs) {
      if (status !== 'completed' || score === undefined) throw new Error(`${name}: ${message ?? 'no score'}`);
      const use = await useOf(join(directory, name), recipes.get(variant) as Recipe);
      all.push({ team: variant, score, ...use });
    }
    left = left.filter((team) => droppedAfter(differencesOf(team), rule()) === undefined);
  }
  const meansOf = (team: string): TeamUse => {
    const over = (pick: (run: EndedRun) => number) => mean(of(team).map(pick));
    return {
      ...{ runs: of(team).length, score: over(({ score }) => score), tokens: over(({ tokens }) => tokens) },
      ...{ price: over(({ price }) => price), trained: over(({ trained }) => trained) },
    };
  };
  const whole = meansOf(WHOLE);
  const rows = Object.keys(smaller).map((name) => ({ name, differences: differencesOf(name), ...meansOf(name) }));
  const { verdicts, chosen } = judge(rows, whole, rule());
  const variants = rows.map((row, i) => ({ ...row, ...(verdicts[i] as Verdict) }));
  return { whole, variants, chosen };
}

/** The tokens and the price of an episode in the last evaluation of a run. */
async function useOf(path: string, recipe: Recipe): Promise<Omit<EndedRun, 'team' | 'score'>> {
  const { policies } = await planRun(recipe, await prepareTasks(recipe));
  const events = await (await RunDirectory.open(path)).events();
  const last = events.findLast((event) => event.type === 'evaluation');
  if (last?.type !== 'evaluation') throw new Error(`${path} has no evaluation`);
  const episodes = last.tasks * last.samples;
  const spent = Object.entries(last.agents).map(([agent, use]) => {
    const policy = recipe.assign[agent];
    const tokens = (use.tokens?.read ?? 0) + (use.tokens?.written ?? 0);
    return { tokens, operations: 2 * tokens * (typeof policy === 'string' ? (policies[policy]?.whole ?? 0) : 0) };
  });
  return {
    episodes,
    tokens: spent.reduce((sum, { tokens }) => sum + tokens, 0) / episodes,
    price: spent.reduce((sum, { operations }) => sum + operations, 0) / episodes,
    trained: Object.values(policies).reduce((sum, policy) => sum + (policy?.trained ?? 0), 0),
  };
}
