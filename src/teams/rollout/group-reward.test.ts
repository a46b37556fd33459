import type { Step } from '@drmas/engine/events';
import { successOf } from '@drmas/engine/nouns';
import { describe, expect, it } from 'vitest';
import { z } from 'zod';
import { eventually, onFakeClock } from '../../../test/support/time-and-chance.js';
import { digitTeam, eventsOf, temporaryRoot, tinyRecipe, trainTiny } from '../../../test/support/tiny-run.js';
import { scriptedContext } from '../../runs/testing/play-scripted.js';
import { scriptedSampler } from '../../runs/testing/scripted-sampler.js';
import { agent } from '../team/agent.js';
import { integer } from '../team/parsers.js';
import { defineTeam, type GroupRewardContext, type Reward, type Team } from '../team/team.js';
import { inProcessExecutor } from './executor.js';
import type { RolloutContext } from './rollout-context.js';

type Context = GroupRewardContext<unknown, string>;
type RewardGroup = (context: Context) => unknown;

/** A team of a writer, whose answers are the numbers of its calls, and of a judge. Answers of `bad` fail. */
const teamOf = (rewardGroup: RewardGroup, more: Partial<Team> = {}) =>
  ({
    ...defineTeam({
      task: z.unknown(),
      agents: { writer: agent({}), judge: agent({ parse: integer }) },
      async play({ agents: { writer } }) {
        const { text } = await writer('write');
        if (text === 'bad') throw new Error('bad answer');
        return text;
      },
      rewardGroup: rewardGroup as () => Reward[],
    }),
    ...more,
  }) as unknown as Team;

const tasks = ['one', 'two'].map((id) => ({ id, data: {} }));
const words = ['ccc', 'a', 'bad', 'bb'];

async function played(team: Team, changes: Partial<RolloutContext> = {}, groupSize = 4) {
  let [written, judged] = [0, 0];
  const sampler = scriptedSampler(({ policy }) =>
    policy === 'judge' ? `${judged++}` : (words[written++ % words.length] ?? ''),
  );
  const context = scriptedContext(team, sampler, changes);
  const { writer, judge } = context.agents as Required<RolloutContext['agents']>;
  const agents = { writer, judge: { ...judge, frozen: true } } as RolloutContext['agents'];
  const executor = inProcessExecutor({ ...context, agents, ...changes });
  return executor.playGroups({ team, tasks, groupSize, phase: 'training', step: 1 });
}
const episodesOf = async (...args: Parameters<typeof played>) =>
  (await played(...args)).flatMap(({ episodes }) => episodes);

/** Shorter answers rank higher: 1 for the shortest. */
const byLength: RewardGroup = ({ episodes }) => {
  const lengths = episodes.map(({ outcome }) => outcome.length).sort((a, b) => a - b);
  return episodes.map(({ outcome }) => 1 - lengths.indexOf(outcome.length) / lengths.length);
};

describe('rewardGroup', () => {
  it.each([
    ['alone', {}, [1, 0]],
    ['with a success of the team', { success: () => 0.5 }, [0.5, 0.5]],
    ['with a reward', { reward: ({ outcome }: { outcome: unknown }) => Number(outcome === 'ccc') }, [0, 1]],
  ])('%s decides the success, whatever calls cost', async (_, more, successes) => {
    const twoWords = (context: Context) => context.episodes.map(({ outcome }) => Number(outcome === 'a'));
    for (const price of [{}, { callCost: 0.25 }]) {
      const team = teamOf(twoWords, more as Partial<Team>);
      const { writer, judge } = scriptedContext(
        team,
        scriptedSampler(() => ''),
      ).agents as Required<RolloutContext['agents']>;
      const agents = { writer: { ...writer, ...price }, judge } as RolloutContext['agents'];
      for (const partWeights of [undefined, { calls: 0.5 }]) {
        const episodes = await episodesOf(team, { agents, partWeights });
        const of = (word: string) => episodes.find(({ outcome }) => outcome === word);
        expect([of('a'), of('ccc')].map((episode) => episode && successOf(episode))).toEqual(successes);
      }
    }
  });

  it('is called once a group, with the episodes that ended, and its rewards are theirs', async () => {
    const seen: string[][] = [];
    const team = teamOf((context) => {
      seen.push(context.episodes.map(({ sample, outcome, turns }) => `${sample} ${outcome} ${turns.length}`));
      return byLength(context);
    });
    const groups = await played(team);
    expect(seen).toEqual([
      ['0 ccc 1', '1 a 1', '3 bb 1'],
      ['0 ccc 1', '1 a 1', '3 bb 1'],
    ]);
    for (const { episodes } of groups) {
      expect(episodes.map(({ score }) => score.team)).toEqual([1 - 2 / 3, 1, 0, 1 - 1 / 3]);
      expect(episodes.map(({ failure }) => failure?.message)).toEqual([undefined, undefined, 'bad answer', undefined]);
      expect(episodes.map(({ sample }) => sample)).toEqual([0, 1, 2, 3]);
    }
  });

  it.each([
    ['2 rewards', () => [1, 2], 'rewardGroup returned 2 rewards, expected a list with one for each of 3 episodes'],
    ['no list', () => 1, 'rewardGroup returned 1, expected a list with one for each of 3 episodes'],
    [
      'promises',
      () => [1, 2, Promise.resolve(1)],
      'rewardGroup returned a promise as rewards[2]: `await` it before rewardGroup returns',
    ],
    [
      'a promise in a reward',
      () => [1, 2, { right: Promise.resolve(1) }],
      'rewardGroup returned a promise as rewards[2].right: `await` it before rewardGroup returns',
    ],
    [
      'an error',
      () => {
        throw new Error('the judge is away');
      },
      'the judge is away',
    ],
  ] as [string, RewardGroup, string][])('fails all episodes of the group for %s', async (_, rewardGroup, message) => {
    const episodes = await episodesOf(teamOf(rewardGroup));
    for (const { score, outcome, failure } of episodes.filter(({ sample }) => sample !== 2)) {
      expect(failure).toMatchObject({ reason: 'reward', message });
      expect([score.team, outcome]).toEqual([0, undefined]);
    }
  });

  it('fails the episode whose reward is no reward', async () => {
    const rewards = [Number.NaN, 1, { team: 1, agents: { nobody: 1 } }];
    const [first, second, , last] = await episodesOf(teamOf(() => rewards));
    expect(first?.failure).toMatchObject({ reason: 'reward', message: expect.stringContaining('the reward is NaN') });
    expect([second?.failure, second?.score.team]).toEqual([undefined, 1]);
    expect(last?.failure?.message).toBe("expected one of the agents writer, judge, got 'nobody'");
  });

  it('is called again with the outcomes as `play` returned them', async () => {
    const play = async ({ agents: { writer } }: Parameters<Team['play']>[0]) => [(await writer?.('write'))?.text];
    const seen: unknown[] = [];
    const taking: RewardGroup = ({ episodes }) => {
      const texts = episodes.map(({ outcome }) => (outcome as unknown as string[]).pop());
      seen.push(texts);
      if (seen.length === 1) throw new Error('busy');
      return texts.map(() => 1);
    };
    await played(teamOf(taking, { play }), { rewardRetries: 1 });
    expect(seen).toEqual([words, words, words]);
  });

  it('is called again if it throws, and has the time of an episode', async () => {
    let calls = 0;
    const fails = teamOf((context) => {
      if (++calls % 2 === 1) throw new Error('busy');
      return byLength(context);
    });
    const episodes = await episodesOf(fails, { rewardRetries: 1, concurrency: 1 });
    expect([calls, episodes.filter(({ failure }) => failure !== undefined).length]).toEqual([4, 2]);
    const hangs = await onFakeClock(async (pass) => {
      let isAsked = false;
      const team = teamOf(() => {
        isAsked = true;
        return new Promise(() => {});
      });
      const ended = episodesOf(team, { timeoutMs: 20, cleanupMs: 1, concurrency: 1 });
      await eventually(() => isAsked);
      await pass(1000);
      return ended;
    });
    expect(hangs[0]?.failure).toMatchObject({ reason: 'timeout', scoring: true });
  });

  it('may ask frozen agents, whose turns the first rewarded episode keeps', async () => {
    const team = teamOf(async ({ episodes, agents: { judge } }) =>
      Promise.all(episodes.map(async ({ outcome }) => (await judge?.(outcome))?.value ?? -1)),
    );
    const [first, second, , last] = await episodesOf(team, { concurrency: 1 });
    expect([first, second, last].map((episode) => episode?.score.team)).toEqual([0, 1, 2]);
    expect(first?.turns.map(({ agent, turn, judging }) => [agent, turn, judging])).toEqual([
      ['writer', 0, undefined],
      ['judge', 1, true],
      ['judge', 2, true],
      ['judge', 3, true],
    ]);
    expect([second, last].map((episode) => episode?.turns.length)).toEqual([1, 1]);
    const ids = (await episodesOf(team)).flatMap(({ turns }) => turns.map(({ id }) => id));
    expect(new Set(ids).size).toBe(ids.length);
  });

  it('replaces the rewards of `reward`, whose success stays; costs and weights apply', async () => {
    const reward = ({ outcome }: { readonly outcome: unknown }) => ({
      team: { correct: outcome === 'a' },
      turns: [{ turn: 0, value: 5 }],
    });
    const both = teamOf(({ episodes }) => episodes.map((_, i) => ({ rank: i, style: 1 })), { reward } as Partial<Team>);
    const [first, second] = await episodesOf(both, { partWeights: { rank: 10 } });
    expect(first?.score).toEqual({ team: 1, agents: {}, parts: { rank: 0, style: 1 }, success: 0 });
    expect(second?.score).toEqual({ team: 11, agents: {}, parts: { rank: 1, style: 1 }, success: 1 });
    expect(second?.turns[0]?.stepReward).toBeUndefined();
  });

  it('is needed if there is no reward', () => {
    const nothing = { task: z.unknown(), agents: { writer: agent() }, play: async () => '' };
    expect(() => defineTeam(nothing)).toThrow(/reward: expected a function here or as rewardGroup/);
  });
});

describe('a run', { tags: 'verify' }, () => {
  const root = temporaryRoot();
  const { reward: _, ...rest } = digitTeam;
  const ranking = {
    ...rest,
    rewardGroup: ({ episodes }: GroupRewardContext<unknown, { readonly text: string }>) =>
      episodes.map(({ outcome: { text } }) => (text.match(/[0-4]/g)?.length ?? 0) / (text.length + 1)),
  };

  it('learns from ranks, filters by them and evaluates with them', async () => {
    const recipe = tinyRecipe({ team: ranking as never }, [
      'training.filter.type=equal-outcomes',
      'evaluation.samples=2',
    ]);
    const events = await eventsOf(await trainTiny(root, recipe));
    const steps = events.filter((event): event is Step & (typeof events)[number] => event.type === 'step');
    expect(steps.length).toBe(recipe.training.steps);
    for (const { reward } of steps) expect(reward?.mean).toBeGreaterThan(0);
    expect(events.filter(({ type }) => type === 'evaluation').length).toBeGreaterThan(1);
  });

  it('is refused with an estimator that plays single episodes', async () => {
    const recipe = tinyRecipe({ team: ranking as never }, ['advantage.type=remax']);
    await expect(trainTiny(root, recipe)).rejects.toThrow("'remax' plays single episodes");
  });
});
