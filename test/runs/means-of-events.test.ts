/**
 * Each number of a step's and an evaluation's event beside the same number counted by hand from all episodes that were
 * played, with failures of each kind. A number that is not counted here has its reason in `elsewhere`, so a new metric
 * fails this test until it has a row.
 */
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { RecipeError } from '@drmas/engine/errors';
import type { EvaluationEvent } from '@drmas/engine/events';
import { RandomStream } from '@drmas/engine/math';
import { choiceTable } from '@drmas/engine/model';
import { type Episode, isUnscored, type Turn } from '@drmas/engine/nouns';
import { describe, expect, it } from 'vitest';
import { openEstimator } from '../../src/method/advantage.js';
import { stepAdvantages } from '../../src/method/index.js';
import type { RecipeInput } from '../../src/method/recipe/define.js';
import { frozen } from '../../src/method/recipe/frozen.js';
import { type Recipe, recipeJson } from '../../src/method/recipe/recipe.js';
import { storedEpisode } from '../../src/method/store/episode-files.js';
import { evaluationEvent } from '../../src/method/training/evaluation/evaluate-policies.js';
import type { Played } from '../../src/method/training/play/played.js';
import { collectLog } from '../../src/runs/studies/inspect/collect-turns.js';
import { inspect, storedRules } from '../../src/runs/studies/inspect/inspect-log.js';
import { probeFindings } from '../../src/runs/studies/plan/probe/probe-findings.js';
import {
  choiceRecipe,
  type GameRules,
  game,
  learnSteps,
  type PlayedAndLearnt,
  type Round,
  richReward,
} from '../support/choice-run.js';
import { drawnSettings, tables, type Way } from '../support/drawn-settings.js';
import { temporaryRoot } from '../support/tiny-run.js';

const many = { tags: 'verify', timeout: 300_000 };

// Arithmetic by hand, without the functions that the events are made with.

/** The mean; undefined for an empty list, because nothing was measured. */
const average = (values: readonly number[]): number | undefined =>
  values.length === 0 ? undefined : values.reduce((sum, value) => sum + value, 0) / values.length;
const share = <T>(items: readonly T[], holds: (item: T) => boolean) =>
  average(items.map((item) => Number(holds(item))));
const spread = (values: readonly number[]): number => {
  const centre = average(values) ?? 0;
  return values.length < 2 ? 0 : Math.sqrt(values.reduce((sum, x) => sum + (x - centre) ** 2, 0) / (values.length - 1));
};
const total = (values: readonly number[]) => values.reduce((sum, value) => sum + value, 0);
const solved = ({ failure, score }: Episode) => (failure === undefined ? (score.parts.correct ?? 0) : 0);
const earned = (episode: Episode, turn: Turn) =>
  (episode.score.agents[turn.agent] ?? episode.score.team) + (turn.stepReward ?? 0) - turn.penalty;
/** A failure of the agents' texts teaches; one of the code does not, unless the recipe says that it counts 0. */
const isLearnt = ({ failure }: Episode, rule: string) =>
  failure === undefined ||
  rule === 'zero' ||
  (['invalid-output', 'overlong', 'too-many-turns'].includes(failure.reason) && failure.scoring !== true);

interface Counted {
  /** All episodes that were played. */
  readonly all: readonly Episode[];
  /** Those that have a score. */
  readonly judged: readonly Episode[];
  /** Those that an update may learn from. */
  readonly learnt: readonly Episode[];
  /** Those that the update learns from: a filter drops groups. */
  readonly kept: readonly Episode[];
  readonly extra: readonly Episode[];
}

const turnsOf = (episodes: readonly Episode[], agent: string) =>
  episodes.flatMap((episode) =>
    episode.turns
      .filter((turn) => turn.agent === agent)
      .map((turn) => ({ episode, turn, earned: earned(episode, turn) })),
  );
const byTask = <T>(items: readonly T[], taskOf: (item: T) => string): readonly (readonly T[])[] =>
  [...new Set(items.map(taskOf))].map((task) => items.filter((item) => taskOf(item) === task));
const partOf = (episodes: readonly Episode[], name: string) =>
  average(episodes.map(({ score }) => score.parts[name] ?? 0));

/** A failed episode earns an agent nothing for the parts of its reward. */
const partsOfAgent = ({ failure, score }: Episode, agent: string) =>
  failure === undefined ? score.agentParts?.[agent] : {};

type Row = (of: Counted, match: readonly string[]) => number | undefined;

/** Each number of a step's event by its path, counted by hand. */
const ofSteps: readonly (readonly [RegExp, Row])[] = [
  [/^reward\.mean$/, ({ judged }) => average(judged.map(({ score }) => score.team))],
  [/^reward\.std$/, ({ judged }) => spread(judged.map(({ score }) => score.team))],
  [/^success$/, ({ judged }) => average(judged.map(solved))],
  [/^parts\.(\w+)$/, ({ judged }, [name = '']) => partOf(judged, name)],
  [
    /^metrics\.(\w+)$/,
    ({ judged }, [name = '']) => average(judged.flatMap(({ score }) => score.metrics?.[name] ?? [])),
  ],
  [/^episodes\.played$/, ({ all }) => all.length],
  [/^episodes\.failed$/, ({ all }) => all.filter(({ failure }) => failure !== undefined).length],
  [
    /^levels\.(\w+)\.tasks$/,
    ({ judged }, [level]) =>
      byTask(
        judged.filter((each) => levelOf(each) === level),
        ({ task }) => task.id,
      ).length,
  ],
  [/^levels\.(\w+)\.episodes$/, ({ judged }, [level]) => judged.filter((each) => levelOf(each) === level).length],
  [
    /^levels\.(\w+)\.success$/,
    ({ judged }, [level]) => average(judged.filter((e) => levelOf(e) === level).map(solved)),
  ],
  [/^baseline\.episodes$/, ({ extra }) => extra.length],
  [/^baseline\.failed$/, ({ extra }) => extra.filter(({ failure }) => failure !== undefined).length],
  [
    /^baseline\.reward$/,
    ({ extra }) => average(extra.filter((each) => isLearnt(each, 'exclude')).map(({ score }) => score.team)),
  ],
  [/^tokens\.sampled$/, ({ all, extra }) => total([...all, ...extra].flatMap(({ turns }) => turns.map(written)))],
  [/^agents\.(\w+)\.turns$/, ({ all }, [agent = '']) => turnsOf(all, agent).length],
  [/^agents\.(\w+)\.rewardMean$/, ({ learnt }, [agent = '']) => average(turnsOf(learnt, agent).map((t) => t.earned))],
  [/^agents\.(\w+)\.rewardedTurns$/, ({ learnt }, [agent = '']) => turnsOf(learnt, agent).length],
  [/^agents\.(\w+)\.rewardStd$/, ({ learnt }, [agent = '']) => spread(turnsOf(learnt, agent).map((t) => t.earned))],
  [/^agents\.(\w+)\.invalid$/, ({ all }, [agent = '']) => share(turnsOf(all, agent), ({ turn }) => !turn.valid)],
  [
    /^agents\.(\w+)\.responseTokens$/,
    ({ all }, [agent = '']) => average(turnsOf(all, agent).map((t) => written(t.turn))),
  ],
  [
    /^agents\.(\w+)\.sampledEntropy$/,
    ({ all }, [agent = '']) => average(turnsOf(all, agent).flatMap(({ turn }) => turn.logprobs.map((x) => -x))),
  ],
  [
    /^agents\.(\w+)\.parts\.(\w+)$/,
    ({ learnt }, [agent = '', part = '']) => {
      const of = learnt.map((each) => partsOfAgent(each, agent)).filter((parts) => parts !== undefined);
      return average(of.map((parts) => parts[part] ?? 0));
    },
  ],
  [/^agents\.(\w+)\.calls\.share$/, ({ kept }, [agent = '']) => share(kept, (each) => calls(each, agent))],
  [/^agents\.(\w+)\.calls\.overall$/, ({ kept }) => average(kept.map(({ score }) => score.team))],
  [
    /^agents\.(\w+)\.calls\.success$/,
    ({ kept }, [agent = '']) => average(kept.filter((each) => calls(each, agent)).map(({ score }) => score.team)),
  ],
  [
    /^agents\.(\w+)\.health\.groupSpread$/,
    ({ learnt }, [agent = '']) =>
      average(
        byTask(turnsOf(learnt, agent), (t) => t.episode.task.id).flatMap((turns) =>
          turns.length < 2 ? [] : spread(turns.map((t) => t.earned)),
        ),
      ),
  ],
  [
    /^agents\.(\w+)\.health\.duplicates$/,
    ({ learnt }, [agent = '']) => {
      const turns = turnsOf(learnt, agent);
      return share(turns, ({ episode, turn }) =>
        turns.some((t) => t.episode.task.id === episode.task.id && t.episode !== episode && t.turn.text === turn.text),
      );
    },
  ],
  [
    /^agents\.(\w+)\.tokens\.read$/,
    ({ all, extra }, [agent = '']) => total(turnsOf([...all, ...extra], agent).map(read)),
  ],
  [
    /^agents\.(\w+)\.tokens\.written$/,
    ({ all, extra }, [agent = '']) => total(turnsOf([...all, ...extra], agent).map(({ turn }) => written(turn))),
  ],
];

/** The other numbers of a step, each with its reason. */
const elsewhere: readonly (readonly [RegExp, string])[] = [
  [/^(step|seconds|phaseSeconds\..*)$/, 'the number of the step, and what the clock says'],
  [
    /^(policies\..*|agents\.\w+\.(gradientNorm|agreement|loss|entropy|clipFraction|kl|maxRatioDeviation|logprobGap|importance\w+|referenceKl|clippingBias|klBaseline))$/,
    'of the update: mini-batches.test.ts',
  ],
  [/^(tokens\.trained|agents\.\w+\.tokens\.trained)$/, 'of the update: train.test.ts'],
  [
    /^agents\.\w+\.(inflation\..*|maxAbsAdvantage|calls\.alone)$/,
    'of the estimator: inflation.test.ts, own-share.test.ts, analysis.test.ts',
  ],
  [/^agents\.\w+\.chains\./, 'chains.test.ts'],
  [/^agents\.\w+\.health\.(chance|rewardedInvalid)$/, 'agent-health.test.ts'],
  [/^(agents\.\w+\.health\.)?groups\.\w+$/, 'kinds of groups: analysis.test.ts and agent-health.test.ts'],
  [/^(agents\.\w+\.)?cost$/, 'train.test.ts'],
  [/^levels\.\w+\.predicted$/, 'curriculum.test.ts'],
  [/^filter\.\w+$/, 'counts of the filter: play-step.test.ts'],
];

const levelOf = ({ task }: Episode) => (task.data as { readonly level: string }).level;
const calls = ({ turns }: Episode, agent: string) => turns.some((turn) => turn.agent === agent);
const written = ({ response }: Turn) => response.length;
const read = ({ turn }: { readonly turn: Turn }) => turn.prompt.length;

function numbersOf(event: object): Record<string, number> {
  const flat = (of: object, path: string): [string, number][] =>
    Object.entries(of).flatMap(([name, value]) => {
      const at = path === '' ? name : `${path}.${name}`;
      if (typeof value === 'object' && value !== null) return flat(value, at);
      return typeof value === 'number' ? [[at, value]] : [];
    });
  return Object.fromEntries(flat(event, ''));
}

/** Compares each number with its row. @returns The paths that a row counted */
function compare(event: object, counted: Counted, rows: typeof ofSteps, others: typeof elsewhere): string[] {
  return Object.entries(numbersOf(event)).flatMap(([path, value]) => {
    if (others.some(([pattern]) => pattern.test(path))) return [];
    const row = rows.find(([pattern]) => pattern.test(path));
    expect(row, `${path} is counted by hand, or has a reason`).toBeDefined();
    const [pattern, count] = row as (typeof rows)[number];
    expect(value, path).toBeCloseTo(count(counted, [...(pattern.exec(path) ?? [])].slice(1)) ?? Number.NaN, 9);
    return [path];
  });
}

const countedIn = (played: Played, { training }: Recipe): Counted => {
  const all = played.all.flatMap(({ episodes }) => episodes);
  const kept = played.kept.flatMap(({ episodes }) => episodes);
  const extra = played.extra.episodes;
  const rule = training.failedEpisodes;
  return {
    all,
    extra,
    kept,
    judged: all.filter((each) => !isUnscored(each)),
    learnt: all.filter((e) => isLearnt(e, rule)),
  };
};

// A game in which each kind of failure happens to a part of the episodes.

const failing =
  (what: string) =>
  (chance: number): void => {
    if (chance < 0.35) throw new Error(what);
  };
const always = (what: string) => (): never => {
  throw new Error(what);
};
/** Failures of all episodes. */
const complete: Readonly<Record<string, GameRules>> = {
  'each play throws': { between: always('the path is closed') },
  'each reward throws': { reward: always('no score') },
};
const rules: Readonly<Record<string, GameRules>> = {
  ...complete,
  'no failure': {},
  'play throws': { between: failing('the path is closed') },
  'the reward throws': {
    reward: (rounds: readonly Round[], chance: number) => {
      failing('no score')(chance);
      return richReward(rounds);
    },
  },
  'both throw': {
    between: failing('the path is closed'),
    reward: (rounds: readonly Round[], chance: number) => {
      if (chance > 0.65) throw new Error('no score');
      return richReward(rounds);
    },
  },
};

const turnLimit = ['training.maxTurns=3'];
const table = choiceTable({ choices: ['a', 'b', 'c', 'x'] });
const policy = { model: table, optimizer: { type: 'sgd', learningRate: 0.5 } } as const;
/** Who plays with which model, in variants other than two policies. */
let answers = 0;
const text = frozen({ complete: async () => ({ text: 'abcx'.charAt(answers++ % 4) }) });
const assigned: Readonly<Record<string, Partial<RecipeInput>>> = {
  'a frozen agent': { assign: { first: 'first', second: text }, policies: { first: policy } },
  'a frozen agent beside failures that count 0': {
    ...{ assign: { first: text, second: 'second' }, policies: { second: policy } },
  },
  'one policy for both': { assign: 'shared', policies: { shared: policy } },
};
const variants: Readonly<Record<string, readonly string[]>> = {
  plain: [],
  'failed episodes count 0': ['training.failedEpisodes=zero'],
  'too many turns': turnLimit,
  'a price of calls': ['agents.first.callCost=0.125', ...turnLimit],
  'a greedy baseline': ['advantage.type=remax'],
  levels: ['training.curriculum.by=level'],
  'a filter': ['training.filter.type=equal-outcomes'],
  'a filter that refills': ['training.filter.type=equal-outcomes', 'training.filter.refill.maxRounds=3'],
  'groups of different sizes': ['training.curriculum.by=level', 'training.curriculum.groupSizes.least=2'],
  'episodes that are played again': ['advantage.type=counterfactual'],
  'weights of parts': ['training.partWeights.correct=0.25', 'agents.second.tokenCost=0.5'],
  'a frozen agent': [],
  'a frozen agent beside failures that count 0': ['training.failedEpisodes=zero'],
  'one policy for both': ['policies.shared.miniBatches=3', 'policies.shared.epochs=2'],
};

const cases = Object.keys(rules).flatMap((failure) =>
  Object.keys(variants).map((variant) => [failure, variant] as const),
);

/** The daily tests try each variant beside the worst failures, and each failure without a variant. */
const isDaily = ([failure, variant]: readonly [string, string]) => failure === 'both throw' || variant === 'plain';

describe('each number of a step is the one that is counted by hand', () => {
  it.each(cases.filter(isDaily))('%s, %s', countsAsByHand);
  it.each(cases.filter((each) => !isDaily(each)))('%s, %s', { tags: 'verify' }, countsAsByHand);

  async function countsAsByHand(failure: string, variant: string): Promise<void> {
    const recipe = choiceRecipe(
      { team: game(rules[failure]), training: { steps: 2, tasksPerStep: 4, groupSize: 6 }, ...assigned[variant] },
      variants[variant],
    );
    const paths = new Set<string>();
    for (const { played, event } of await learnSteps(recipe))
      for (const path of compare(event, countedIn(played, recipe), ofSteps, elsewhere)) paths.add(path);
    expect(paths.size).toBeGreaterThan(failure in complete ? 10 : 15);
  }
});

/** The ways whose rewards have the parts that are counted here. */
const rich = tables.filter(({ name }) => /rich|failures|one policy|frozen|twice/.test(name));
const DRAWS = 100;

it('each number is the one that is counted by hand, under settings that are drawn together', many, async () => {
  let ran = 0;
  for (let n = 0; n < DRAWS; n++) {
    const way = rich[n % rich.length] as Way;
    const overrides = drawnSettings(new RandomStream('means', Number(process.env.DRMAS_TEST_SEED ?? 1), n), way);
    try {
      const recipe = way.recipe(overrides);
      for (const { played, event } of await learnSteps(recipe))
        compare(event, countedIn(played, recipe), ofSteps, elsewhere);
      ran++;
    } catch (error) {
      if (!(error instanceof RecipeError)) throw new Error(`${way.name}: ${overrides.join(' ')}`, { cause: error });
    }
  }
  expect(ran).toBeGreaterThan(DRAWS / 2);
});

// Evaluations and the probe of `drmas plan` count the same episodes.

const perTask = (episodes: readonly Episode[], of: (episode: Episode) => number) =>
  byTask(episodes, ({ task }) => task.id).map((samples) => samples.map(of));
const meanOverTasks = (episodes: readonly Episode[], of: (episode: Episode) => number) =>
  average(perTask(episodes, of).map((values) => average(values) as number));

const ofEvaluations: typeof ofSteps = [
  [/^tasks$/, ({ judged }) => perTask(judged, solved).length],
  [/^averageAtK$|^passAt\.1$/, ({ judged }) => meanOverTasks(judged, solved)],
  [/^passAtK$/, ({ judged }) => average(perTask(judged, solved).map((values) => Math.max(...values)))],
  [/^reward$/, ({ judged }) => meanOverTasks(judged, ({ score }) => score.team)],
  [/^parts\.(\w+)$/, ({ judged }, [part = '']) => meanOverTasks(judged, ({ score }) => score.parts[part] ?? 0)],
  [
    /^agents\.(\w+)\.parts\.(\w+)$/,
    ({ judged }, [agent = '', part = '']) => {
      const of = judged.filter((each) => partsOfAgent(each, agent) !== undefined);
      return meanOverTasks(of, (each) => partsOfAgent(each, agent)?.[part] ?? 0);
    },
  ],
  [/^failed$/, ({ judged }) => judged.filter(({ failure }) => failure !== undefined).length],
  [/^unscored$/, ({ all, judged }) => all.length - judged.length],
  [/^episodes$/, ({ all }) => all.length],
  [/^agents\.(\w+)\.callsPerEpisode$/, ({ all }, [agent = '']) => turnsOf(all, agent).length / all.length],
  [
    /^agents\.(\w+)\.reward$/,
    ({ judged }, [agent = '']) => meanOverTasks(judged, ({ score }) => score.agents[agent] ?? score.team),
  ],
  ...ofSteps.filter(([pattern]) => /agents.*(turns|invalid|responseTokens|tokens)|\^metrics/.test(`${pattern}`)),
];
const elsewhereInEvaluations: typeof elsewhere = [
  [/^(step|samples|seconds)$/, 'the request, and what the clock says'],
  [/nterval\.|^interval\./, 'bootstrap intervals: statistics.test.ts'],
  [/^(majorityAtK|passAt\.(2|4|8))$/, 'evaluate-policies.test.ts'],
  [/^agents\.\w+\.tokens\.trained$/, 'no evaluation trains'],
];

const ofProbes: typeof ofSteps = [
  [/^tasks$/, ({ all }) => perTask(all, solved).length],
  [/^episodes$/, ({ all }) => all.length],
  [/^success\.mean$/, ({ judged }) => meanOverTasks(judged, solved)],
  [/^best$/, ({ judged }) => average(perTask(judged, solved).map((values) => Math.max(...values)))],
  [/^reward$/, ({ judged }) => meanOverTasks(judged, ({ score }) => score.team)],
  [
    /^ownRewards\.(\w+)$/,
    ({ judged }, [agent = '']) => meanOverTasks(judged, ({ score }) => score.agents[agent] ?? score.team),
  ],
  [/^failures\.(.+)$/, ({ all }, [reason]) => all.filter(({ failure }) => failure?.reason === reason).length],
  [
    /^agents\.(\w+)\.cut$/,
    ({ all }, [agent = '']) => share(turnsOf(all, agent), ({ turn }) => turn.finishReason === 'length'),
  ],
  ...ofEvaluations.filter(([pattern]) => /callsPerEpisode|\^parts/.test(`${pattern}`)),
  ...ofSteps.filter(([pattern]) => /agents.*(turns|invalid|responseTokens|reward(Mean|Std)|calls)/.test(`${pattern}`)),
];
const elsewhereInProbes: typeof elsewhere = [
  [/^(groupSize|success\.(low|high|level))$/, 'of the recipe, and bootstrap intervals'],
  [/^(groups|estimators)\b|^repeated$|calls\.alone$/, 'probe-findings.test.ts'],
];

describe('evaluations and the probe count by hand alike', () => {
  it.each(Object.keys(rules).flatMap((failure) => [[failure, turnLimit] as const, [failure, []] as const]))(
    '%s %s',
    async (failure, limit) => {
      const recipe = choiceRecipe(
        { team: game(rules[failure]), training: { steps: 1, tasksPerStep: 6, groupSize: 8 } },
        limit,
      );
      const [{ played }] = (await learnSteps(recipe)) as [PlayedAndLearnt];
      const counted = countedIn(played, recipe);
      const event: EvaluationEvent = evaluationEvent(
        played.all,
        { step: 1, samples: 8, level: 0.95, tasks: 6 } as never,
        1,
      );
      const least = failure in complete ? 5 : 12;
      expect(compare(event, counted, ofEvaluations, elsewhereInEvaluations).length).toBeGreaterThan(least);

      if (counted.judged.length === 0) return; // the probe ends with an error
      const advantages = stepAdvantages(
        { estimator: openEstimator(recipe.advantage), agents: recipe.agents },
        played.kept,
      );
      const findings = probeFindings(recipe, played.all, { ...advantages, episodes: counted.all });
      expect(compare(findings, counted, ofProbes, elsewhereInProbes).length).toBeGreaterThan(least);
    },
  );
});

// `drmas inspect` counts the same from the episode files of a run.

/** The episodes of a group that are compared: those in which an agent that trains wrote. */
const comparedIn = (episodes: readonly Episode[]) => {
  const compared = episodes.filter(({ turns }) => turns.some(({ frozen }) => frozen !== true));
  return compared.length === 0 ? episodes : compared;
};
const groupsIn = ({ learnt }: Counted) => byTask(learnt, ({ task }) => task.id).map(comparedIn);
const areEqual = (values: readonly number[]) => Math.max(...values) - Math.min(...values) < 1e-9;
const withoutCost = ({ score }: Episode) => score.team - price * (score.parts.calls ?? 0);
const trainedTurnsOf = (episodes: readonly Episode[], agent: string) =>
  turnsOf(episodes, agent).filter(({ turn }) => turn.frozen !== true);
const isRight = (group: readonly Episode[]) => group.every((each) => solved(each) >= 0.5);
const unmixed = (of: Counted) => groupsIn(of).filter((group) => areEqual(group.map(withoutCost)));
/** The weight of the part `calls` in every recipe here. */
const price = 1;

const ofInspections: typeof ofSteps = [
  [/^turns$/, ({ learnt }) => learnt.flatMap(({ turns }) => turns.filter(({ frozen }) => frozen !== true)).length],
  [/^episodes$/, ({ learnt }) => learnt.length],
  [/^groups\.count$/, (of) => groupsIn(of).length],
  [/^groups\.mixed$/, (of) => groupsIn(of).length - unmixed(of).length],
  [/^groups\.allRight$/, (of) => unmixed(of).filter(isRight).length],
  [/^groups\.allWrong$/, (of) => unmixed(of).filter((group) => !isRight(group)).length],
  [
    /^agents\.(\w+)\.callsPerEpisode$/,
    ({ learnt }, [agent = '']) => trainedTurnsOf(learnt, agent).length / learnt.length,
  ],
  [/^agents\.(\w+)\.turns$/, ({ learnt }, [agent = '']) => trainedTurnsOf(learnt, agent).length],
  [
    /^agents\.(\w+)\.penalised$/,
    ({ learnt }, [agent = '']) => share(trainedTurnsOf(learnt, agent), ({ turn }) => turn.penalty > 0),
  ],
  ...ofSteps.filter(([pattern]) => /agents.*(rewardMean|rewardStd)/.test(`${pattern}`)),
  [/^agents\.(\w+)\.calls\.share$/, ({ learnt }, [agent = '']) => share(learnt, (each) => calls(each, agent))],
  [/^agents\.(\w+)\.calls\.overall$/, ({ learnt }) => average(learnt.map(({ score }) => score.team))],
  [
    /^agents\.(\w+)\.calls\.success$/,
    ({ learnt }, [agent = '']) => average(learnt.filter((each) => calls(each, agent)).map(({ score }) => score.team)),
  ],
];
const elsewhereInInspections: typeof elsewhere = [
  [/^(files|rows)$/, 'of the files'],
  [/^(groups\.(nothing|penaltiesOnly|ownRewardsOnly|single\w+)|estimators\..*)$/, 'inspect-log.test.ts'],
  [/^agents\.\w+\.(inflation\..*|ownShare|calls\.alone)$/, 'own-share.test.ts and inflation.test.ts'],
];

describe('an inspection counts the stored episodes by hand alike', () => {
  const root = temporaryRoot();

  it.each(cases.filter(isDaily))('%s, %s', countsAsByHand);
  it.each(cases.filter((each) => !isDaily(each)))('%s, %s', { tags: 'verify' }, countsAsByHand);

  async function countsAsByHand(failure: string, variant: string): Promise<void> {
    const recipe = choiceRecipe(
      { team: game(rules[failure]), training: { steps: 1, tasksPerStep: 6, groupSize: 6 }, ...assigned[variant] },
      variants[variant],
    );
    const [{ played, learnt, event }] = (await learnSteps(recipe)) as [PlayedAndLearnt];
    const counted = countedIn(played, recipe);
    const file = join(root, 'step-000001.jsonl');
    const rows = counted.all.map((each) => storedEpisode(each, learnt.advantages.byEpisode.get(each)));
    await writeFile(file, rows.map((row) => `${JSON.stringify(row)}\n`).join(''));
    const log = collectLog([file], {}, storedRules(JSON.parse(JSON.stringify(recipeJson(recipe)))));
    if (counted.learnt.every(({ turns }) => turns.every(({ frozen }) => frozen === true)))
      return void (await expect(log).rejects.toThrow(/expected at least one turn, found none/));
    const findings = inspect(await log);
    expect(compare(findings, counted, ofInspections, elsewhereInInspections).length).toBeGreaterThan(10);
    const { mixed, allRight, allWrong } = findings.groups;
    expect(event.groups).toMatchObject({ mixed, allRight, allWrong });
  }
});

it('what was not measured is absent, and not 0', async () => {
  const recipe = choiceRecipe({
    team: game({ reward: always('no score') }),
    training: { steps: 1, tasksPerStep: 2, groupSize: 4 },
  });
  const [step] = await learnSteps(recipe);
  expect(step).toBeDefined();
  const { episodes, agents, ...event } = (step as PlayedAndLearnt).event;
  expect(episodes).toEqual({ played: 8, failed: 8 });
  for (const name of ['reward', 'success', 'parts', 'metrics']) expect(event).not.toHaveProperty(name);
  // The agents wrote, and an update may learn from nothing of it.
  expect(Object.keys(agents)).toEqual(['first', 'second']);
  for (const agent of Object.values(agents)) {
    expect(agent.turns).toBeGreaterThan(0);
    for (const name of ['rewardMean', 'rewardStd', 'health']) expect(agent).not.toHaveProperty(name);
  }
});
