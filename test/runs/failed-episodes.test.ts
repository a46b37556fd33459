/** Runs go on whatever fails, under every estimator, and count the episodes that are left. */

import { RecipeError } from '@drmas/engine/errors';
import { mean, RandomStream } from '@drmas/engine/math';
import { choiceTable, tinyDecoder } from '@drmas/engine/model';
import {
  type Episode,
  type FailureReason,
  isLesson,
  isUnscored,
  responseTokens,
  successOf,
  trainedTurns,
  turnReward,
} from '@drmas/engine/nouns';
import { describe, expect, it } from 'vitest';
import { z } from 'zod';
import type { RecipeInput } from '../../src/method/recipe/define.js';
import { frozen } from '../../src/method/recipe/frozen.js';
import { baselineWarnings, failureRewards } from '../../src/method/training/stability/step-warnings.js';
import { standard } from '../../src/runs/composition/standard.js';
import { weakSettings } from '../../src/runs/run/checks/weak-settings.js';
import { tinySizes } from '../../src/runs/testing/train-tiny.js';
import { EpisodeFailure } from '../../src/teams/rollout/episode-failure.js';
import { costOfCalls } from '../../src/teams/rollout.js';
import type { Reward, Team } from '../../src/teams/team/team.js';
import { choiceRecipe, game, learnSteps, type PlayedAndLearnt, type Round, richReward } from '../support/choice-run.js';
import { drawnSettings, reasons, tables, type Way } from '../support/drawn-settings.js';

type Advantage = NonNullable<RecipeInput['advantage']>;

/** The choices that an estimator requires. */
const required: Readonly<Record<string, object>> = { partition: { score: 'turn', mean: 'agent', spread: 'task' } };
const estimators = standard.estimators.map(({ type, traits }) => ({
  type,
  advantage: { type, ...required[type] } as Advantage,
  /** A table of choices has no critic, and a signal that plays single episodes has no group to reward. */
  needs: traits.needs,
}));
/** The model of an estimator with a critic. */
const decoder = tinyDecoder({ ...tinySizes, context: 64, tokenizer: { type: 'bytes' } });

/** Half of the episodes fail. Greedy episodes and branches have chances of their own, and fail too. */
const fails = (chance: number) => chance < 0.5;

/** A game in which half of the episodes fail for the reason, before their reward or in it. */
const failing = (reason: FailureReason): Team =>
  reason === 'reward'
    ? game({
        reward: (rounds, chance) => {
          if (fails(chance)) throw new Error('the judge is down');
          return richReward(rounds);
        },
      })
    : game({
        between: (chance) => {
          if (fails(chance)) throw new EpisodeFailure(reason, 'on purpose', { agent: 'first' });
        },
      });

/** Where an episode fails, other than in `play`. */
const places: Readonly<Record<string, () => Team>> = {
  parse: () => {
    const { agents, ...rest } = game();
    // An error in the parser, for half of the texts.
    const parse = (text: string) => {
      if ((text.charCodeAt(0) || 0) % 2 === 1) throw new TypeError('no JSON');
      return text;
    };
    return { ...rest, agents: { ...agents, first: { ...agents.first, parse } } } as unknown as Team;
  },
  judge: () =>
    judged(async ({ agents, outcome }) => {
      const { text } = await (agents.judge as (prompt: string) => Promise<{ text: string }>)('how was it?');
      if (fails((outcome as { chance: number }).chance)) throw new Error(`the judge said ${text}`);
      return 0.5;
    }),
  rewardGroup: () => {
    const { reward: _, ...rest } = game();
    const rewardGroup: Team['rewardGroup'] = ({ task, episodes }) => {
      if ((task as { level: string }).level === 'hard') throw new Error('no ranking');
      return episodes.map((_, i) => i / 4);
    };
    return { ...rest, rewardGroup } as unknown as Team;
  },
  'a rewardGroup that skips one': () => {
    const { reward: _, ...rest } = game();
    const rewardGroup: Team['rewardGroup'] = ({ episodes }) => episodes.slice(1).map((_, i) => i / 4);
    return { ...rest, rewardGroup } as unknown as Team;
  },
};

/** The game with a frozen judge. */
function judged(reward: NonNullable<Team['reward']>): Team {
  const { agents, ...rest } = game();
  return { ...rest, agents: { ...agents, judge: agents.first }, reward } as unknown as Team;
}

const quick = { steps: 2, tasksPerStep: 3, groupSize: 3, rewardRetries: 0 };
const filters = [
  undefined,
  ...(['outcome', 'success', 'outcome+penalties', 'mean'] as const).flatMap((score) => [
    { type: 'equal-outcomes' as const, score },
    { type: 'variance' as const, score, keep: 0.5 },
  ]),
];
const rules = ['exclude', 'zero'] as const;
const DRAWS = 90;

/** Counts a step by hand: which episodes count, what they earn, and whether each learnt turn has finite advantages. */
function expectCounted({ played, learnt, event }: PlayedAndLearnt, rule: (typeof rules)[number]): void {
  const all = played.all.flatMap(({ episodes }) => episodes);
  const counted = all.filter((episode) => isLesson(episode) || rule === 'zero');
  expect(event.episodes).toMatchObject({ played: all.length, failed: all.filter(({ failure }) => failure).length });
  expect(played.scored.flatMap(({ episodes }) => episodes)).toEqual(counted);
  for (const { failure, score } of all) if (failure !== undefined) expect(score.team).toBe(score.parts.calls ?? 0);
  // The means of the step are over all that was played, without those whose reward alone is missing.
  const judged = all.filter((episode) => !isUnscored(episode));
  const meanOf = (of: (episode: Episode) => number) => mean(judged.map(of));
  // A number that could not be measured is absent, and no 0.
  for (const name of ['reward', 'success'] as const) expect(name in event, name).toBe(judged.length > 0);
  if (event.reward !== undefined)
    expect(event.reward.mean).toBeCloseTo(
      meanOf(({ score }) => score.team),
      12,
    );
  for (const [name, value] of Object.entries(event.parts ?? {}))
    expect(value).toBeCloseTo(
      meanOf(({ score }) => score.parts[name] ?? 0),
      12,
    );
  if (judged.length > 0) expect(event.success).toBeCloseTo(meanOf(successOf), 12);
  // The texts of an agent, as of all that it wrote. An agent without an episode that counts has no reward.
  for (const [name, agent] of Object.entries(event.agents)) {
    const written = all.flatMap(({ turns }) => turns).filter((turn) => turn.agent === name);
    expect(agent.turns, name).toBe(written.length);
    expect(agent.invalid).toBeCloseTo(mean(written.map(({ valid }) => Number(!valid))), 12);
    const lengths = written.flatMap((turn) => responseTokens(turn) ?? []); // a frozen text has no tokens
    expect(agent.responseTokens ?? 'absent', name).toEqual(
      lengths.length === 0 ? 'absent' : expect.closeTo(mean(lengths), 12),
    );
    expect(agent.cut ?? 0).toBeLessThanOrEqual(1);
    const logprobs = written.flatMap((turn) => turn.logprobs);
    if (agent.sampledEntropy !== undefined) expect(agent.sampledEntropy).toBeCloseTo(Math.max(0, -mean(logprobs)), 12);
    const own = counted.filter(({ turns }) => turns.some((turn) => turn.agent === name));
    const rewards = own.flatMap((episode) =>
      episode.turns.filter((turn) => turn.agent === name).map((turn) => turnReward(episode, turn)),
    );
    expect(agent.rewardMean ?? 'absent', name).toEqual(
      rewards.length === 0 ? 'absent' : expect.closeTo(mean(rewards), 12),
    );
  }
  const kept = new Set(played.kept.flatMap(({ episodes }) => episodes));
  const turns = [...kept].flatMap(trainedTurns);
  expect(new Set(learnt.advantages.turns.map(({ turn }) => turn))).toEqual(new Set(turns));
  const advantages = learnt.advantages.turns.flatMap(({ advantage }) => advantage);
  expect(advantages.every(Number.isFinite)).toBe(true);
}

const runWith = (team: Team, advantage: Advantage, training: object = {}) => {
  const trained = { first: 'first', second: 'second' };
  const judge = 'judge' in team.agents ? { judge: frozen(decoder) } : {};
  const model = advantage.type === 'gae' ? { policies: { first: { model: decoder }, second: { model: decoder } } } : {};
  const changes = { team, advantage, assign: { ...trained, ...judge }, ...model };
  return learnSteps(choiceRecipe({ ...changes, training: { ...quick, ...training } } as Partial<RecipeInput>));
};

describe('a run goes on after failures, and counts the episodes that are left', () => {
  it.each(estimators)('under $type', async ({ advantage }) => {
    const steps = await runWith(failing('backend'), advantage);
    expect(steps.some(({ event }) => (event.episodes?.failed ?? 0) > 0)).toBe(true);
    for (const step of steps) expectCounted(step, 'exclude');
  });

  const daily = ['drmas', 'grpo-passk', 'remax', 'gae'];
  const whereverTheyFail = async ({ advantage, needs }: (typeof estimators)[number]) => {
    for (const [place, teamOf] of Object.entries(places)) {
      const team = teamOf();
      if (team.rewardGroup !== undefined && (needs === 'greedy' || needs === 'branches')) continue;
      const steps = await runWith(team, advantage, { steps: 1 });
      expect(steps[0]?.event.episodes?.failed, place).toBeGreaterThan(0);
      for (const step of steps) expectCounted(step, 'exclude');
    }
  };
  it.each(estimators.filter(({ type }) => daily.includes(type)))('wherever they fail: $type', whereverTheyFail);
  it.each(estimators.filter(({ type }) => !daily.includes(type)))(
    'wherever they fail: $type',
    { tags: 'verify' },
    whereverTheyFail,
  );

  // A critic has a decoder: minutes beside other work.
  const slow = { tags: 'verify', timeout: 300_000 };
  it.each(estimators)('of each kind, with each filter: $type', slow, async ({ advantage }) => {
    for (const reason of reasons)
      for (const failedEpisodes of rules)
        for (const filter of filters)
          for (const step of await runWith(failing(reason), advantage, { failedEpisodes, filter }))
            expectCounted(step, failedEpisodes);
  });
});

const many = { tags: 'verify', timeout: 300_000 };
it('a run of settings that are drawn together counts the episodes that are left', many, async () => {
  let ran = 0;
  for (let n = 0; n < DRAWS; n++) {
    const way = tables[n % tables.length] as Way;
    const overrides = drawnSettings(new RandomStream('counted', Number(process.env.DRMAS_TEST_SEED ?? 1), n), way);
    const drawn = `${way.name}: ${overrides.join(' ')}`;
    const rule = overrides.includes('training.failedEpisodes=zero') ? 'zero' : 'exclude';
    try {
      for (const step of await learnSteps(way.recipe(overrides))) expectCounted(step, rule);
      ran++;
    } catch (error) {
      if (!(error instanceof RecipeError)) throw new Error(drawn, { cause: error });
    }
  }
  expect(ran).toBeGreaterThan(DRAWS / 2);
});

describe('an agent that is called in one episode of a group', () => {
  const withoutCritic = estimators.filter(({ type }) => type !== 'gae'); // the texts of a decoder are no letters
  it.each(withoutCritic)('leaves $type going on', async ({ advantage }) => {
    // The second player is called only where the first has shown c, and the first is frozen.
    const { play, ...rest } = game();
    const rare = {
      ...rest,
      play: async (context: Parameters<Team['play']>[0]) => {
        const { first, second } = context.agents as Record<
          string,
          (text: string, options: object) => Promise<{ value: unknown }>
        >;
        const shown = await first?.('show', { envStep: 0 });
        const answer = shown?.value === 'c' ? await second?.('show', { envStep: 0 }) : shown;
        return { rounds: [{ first: shown?.value, second: answer?.value }], chance: 1 };
      },
      reward: ({ outcome }: { outcome: unknown }): Reward =>
        Number((outcome as { rounds: { second: unknown }[] }).rounds[0]?.second === 'a'),
    } as unknown as Team;
    const steps = await learnSteps(
      choiceRecipe({
        team: rare,
        advantage,
        assign: { first: 'first', second: 'second' },
        training: { ...quick, steps: 4 },
      } as Partial<RecipeInput>),
    );
    const calls = steps.flatMap(({ played }) =>
      played.all.map(({ episodes }) => episodes.filter(({ turns }) => turns.length === 2).length),
    );
    expect(calls).toContain(1);
    for (const { learnt } of steps)
      expect(learnt.advantages.turns.flatMap(({ advantage }) => advantage).every(Number.isFinite)).toBe(true);
  });
});

describe('a failed measurement is no reward of 0', () => {
  const constant = (of: (rounds: unknown, chance: number) => Reward): Team => game({ reward: of });

  it.each(['remax', 'counterfactual'])('%s sees no better turn if every answer earns the same', async (type) => {
    const advantage = { type } as Advantage;
    const down = game({
      reward: (rounds, chance) => {
        // The chance of a greedy episode is its own. A branch has the chance of its episode, and other answers.
        if (type === 'remax' ? fails(chance) : rounds[1]?.second === 'b') throw new Error('the judge is down');
        return 1;
      },
    });
    const steps = await runWith(down, advantage, { failedEpisodes: 'exclude' });
    const failed = steps.map(({ event }) => event.baseline?.failed ?? 0);
    expect(Math.max(...failed)).toBeGreaterThan(0);
    for (const { learnt, event } of steps) {
      for (const each of learnt.advantages.turns.flatMap(({ advantage }) => advantage)) expect(each).toBe(0);
      // The mean over the episodes that were measured; absent if there are none.
      expect(event.baseline?.reward ?? 1).toBe(1);
    }
    expect(
      (
        await runWith(
          constant(() => 1),
          advantage,
        )
      ).every(({ event }) => event.baseline?.reward === 1),
    ).toBe(true);
  });
});

describe('a failed episode pays for its calls', () => {
  const misfit = z.object({ answer: z.string() });
  const prices = ['agents.first.callCost=0.125', 'agents.second.tokenCost=0.25'];
  /** Every answer earns 0. An output that is not valid makes the schema throw, where a framework would. */
  const wrongAnyway = game({
    between: (_, { first }) => void misfit.parse({ answer: first }),
    reward: () => 0,
  });

  it('so that an output that does not fit is no cheaper than one that does', async () => {
    const recipe = choiceRecipe({ team: wrongAnyway, training: { steps: 1, tasksPerStep: 8, groupSize: 4 } }, prices);
    const [step] = await learnSteps(recipe);
    const episodes = step?.played.all.flatMap(({ episodes }) => episodes) ?? [];
    const failed = episodes.filter(({ failure }) => failure?.reason === 'invalid-output');
    expect(failed.length).toBeGreaterThan(0);
    expect(failed.every(isLesson)).toBe(true);
    for (const { turns, score } of episodes) {
      const cost = turns.reduce((sum, { agent }) => sum + (agent === 'first' ? 0.125 : 0.25), 0);
      expect(score).toMatchObject({ team: -cost, success: 0 });
      expect(score.parts.calls).toBe(-cost);
    }
  });

  it.each(reasons)('after the failure %s, under the rule zero', async (reason) => {
    const training = { steps: 1, tasksPerStep: 4, groupSize: 4, failedEpisodes: 'zero', rewardRetries: 0 } as const;
    const [step] = await learnSteps(choiceRecipe({ team: failing(reason), training }, prices));
    const failed = step?.played.kept.flatMap(({ episodes }) => episodes).filter(({ failure }) => failure) ?? [];
    expect(failed.length).toBeGreaterThan(0);
    for (const { turns, score } of failed)
      expect(score.team).toBe(-turns.reduce((sum, { agent }) => sum + (agent === 'first' ? 0.125 : 0.25), 0));
  });

  it('without a price earns 0 as before, without parts', async () => {
    const [step] = await learnSteps(choiceRecipe({ team: failing('error'), training: quick }));
    const failed = step?.played.all.flatMap(({ episodes }) => episodes).find(({ failure }) => failure);
    expect(failed?.score).toEqual({ team: 0, agents: {}, parts: {} });
  });
});

describe('warnings', () => {
  const first = async (team: Team, training: object = {}, overrides: readonly string[] = []) => {
    const [step] = await learnSteps(
      choiceRecipe({ team, training: { ...quick, ...training } } as Partial<RecipeInput>, overrides),
    );
    if (step === undefined) throw new Error('no step was played');
    return step.played;
  };

  it('say that failing pays if other episodes earn less than 0, without the cost of calls', async () => {
    const below = await first(game({ reward: () => -0.5 }));
    expect(failureRewards(below)).toMatchObject([
      { code: 'failures.pay', message: expect.stringContaining('earns -0.5') },
    ]);
    expect(failureRewards({ ...below, step: 2 })).toEqual([]);
    const prices = ['agents.first.callCost=0.25'];
    const costOf = costOfCalls(choiceRecipe({}, prices).agents);
    expect(failureRewards(await first(game({ reward: () => 0 }), {}, prices), costOf)).toEqual([]);
    expect(failureRewards(await first(failing('invalid-output')))).toEqual([]);
  });

  it('say that failing pays for an agent whose own reward is below 0, if it learns and its sign is right', async () => {
    const own = (value: (round: Round) => number): Team =>
      game({ reward: ([round]) => ({ team: 1, agents: { second: value(round as Round) } }) });
    const below = own(() => -0.5);
    expect(failureRewards(await first(below))).toMatchObject([
      { code: 'failures.pay', agent: 'second', message: expect.stringContaining("'second' earns -0.5") },
    ]);
    expect(failureRewards(await first(own(() => 0)))).toEqual([]);
    const assign = { first: 'first', second: frozen(decoder) };
    const model = choiceTable({ choices: ['a', 'b', 'c', 'x'] });
    const policies = { first: { model } };
    const frozenSecond = { team: below, assign, policies, training: quick } as unknown as Partial<RecipeInput>;
    const [step] = await learnSteps(choiceRecipe(frozenSecond));
    expect(step && failureRewards(step.played)).toEqual([]);
    // With a wrong sign it has another warning.
    const right = (round: Round | undefined) => Number(round?.first === 'a');
    const opposed = game({ reward: ([round]) => ({ team: right(round), agents: { second: -right(round) } }) });
    expect(failureRewards(await first(opposed, { groupSize: 12 }))).toEqual([]);
  });

  it('do not take a part of the reward for the cost of calls if calls have no price', async () => {
    const calls = game({ reward: () => ({ correct: 0, calls: -0.5 }) });
    const costOf = costOfCalls(choiceRecipe().agents);
    expect(failureRewards(await first(calls), costOf)).toMatchObject([{ code: 'failures.pay' }]);
    const named = (name: string) =>
      game({ reward: (rounds) => ({ correct: 1, [name]: rounds.length === 1 ? -0.1 : -0.2 }) });
    const kindsOf = async (name: string) =>
      (await learnSteps(choiceRecipe({ team: named(name), training: { ...quick, groupSize: 8 } }))).map(
        ({ event }) => event.groups,
      );
    expect(await kindsOf('calls')).toEqual(await kindsOf('rounds'));
  });

  it('say that all baselines of a step failed, and why', async () => {
    const played = await first(failing('backend'));
    const [failed] = played.all.flatMap(({ episodes }) => episodes).filter(({ failure }) => failure);
    const [whole] = played.all.flatMap(({ episodes }) => episodes).filter(({ failure }) => failure === undefined);
    const warningsOf = (...episodes: (Episode | undefined)[]) =>
      baselineWarnings({ step: 3, extra: { episodes: episodes as Episode[], byTurn: new Map() } });
    expect(warningsOf(failed, failed)).toMatchObject([
      { message: 'step 3: all 2 episodes that were played as baselines failed: (backend) on purpose' },
    ]);
    expect([...warningsOf(failed, whole), ...warningsOf()]).toEqual([]);
  });
});

describe('groups whose rewards differ by the cost of calls alone', () => {
  /** The cost of the second player's tokens differs, because it speaks only after an a. */
  const rules = (reward: number): Team => {
    const { play: _, ...rest } = game({ reward: () => reward });
    return {
      ...rest,
      play: async ({ agents }: { agents: Record<string, (text: string) => Promise<{ value: unknown }>> }) => {
        const one = await agents.first?.('show');
        if (one?.value === 'a') await agents.second?.('show');
        return { rounds: [], chance: 1 };
      },
    } as unknown as Team;
  };
  const prices = ['agents.second.tokenCost=1e-5'];
  const played = async (reward: number, score: string, partWeights?: object) => {
    const filter = { type: 'equal-outcomes', score };
    const training = { ...quick, groupSize: 8, steps: 1, filter, partWeights };
    const [step] = await learnSteps(choiceRecipe({ team: rules(reward), training } as Partial<RecipeInput>, prices));
    return { groups: step?.event.groups, kept: step?.played.kept.length };
  };

  it('are all right or all wrong, and dropped by the filter if it compares the success', async () => {
    expect(await played(0, 'success')).toEqual({
      groups: { allRight: 0, allWrong: 3, mixed: 0, penaltyOnly: 3 },
      kept: 0,
    });
    expect(await played(1, 'success')).toEqual({
      groups: { allRight: 3, allWrong: 0, mixed: 0, penaltyOnly: 3 },
      kept: 0,
    });
    expect((await played(0, 'outcome')).kept).toBe(3);
  });

  it.each([0.5, 2, 1000])('whatever the weight of the calls, here %d', async (calls) => {
    expect((await played(1, 'success', { calls })).groups).toEqual((await played(1, 'success')).groups);
  });

  it('cause a warning about a filter that compares rewards', () => {
    const warningsOf = (...overrides: string[]) =>
      weakSettings(choiceRecipe({}, overrides)).map(({ message }) => message);
    const filter = 'training.filter.type=equal-outcomes';
    expect(warningsOf(filter, ...prices)).toEqual([expect.stringContaining('agents.second.tokenCost')]);
    expect([...warningsOf(filter), ...warningsOf(filter, 'training.filter.score=success', ...prices)]).toEqual([]);
  });
});
