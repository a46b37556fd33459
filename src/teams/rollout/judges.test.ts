import type { Episode } from '@drmas/engine/nouns';
import { describe, expect, it } from 'vitest';
import { z } from 'zod';
import { eventually, takesTime } from '../../../test/support/time-and-chance.js';
import { playScripted, scriptedContext } from '../../runs/testing/play-scripted.js';
import { type ScriptedSampler, scriptedSampler } from '../../runs/testing/scripted-sampler.js';
import { agent } from '../team/agent.js';
import { integer } from '../team/parsers.js';
import { defineTeam, type RewardContext, type Team } from '../team/team.js';
import { playEpisode } from './play-episode.js';
import type { RolloutContext } from './rollout-context.js';

type Context = RewardContext<unknown, string, Record<'solver' | 'judge', ReturnType<typeof agent>>>;

const agents = { solver: agent({}), judge: agent({ parse: integer }) };
const teamOf = (reward: (context: Context) => Promise<number>, judgedInPlay = false) =>
  defineTeam({
    task: z.unknown(),
    agents,
    async play({ agents: { solver, judge } }) {
      const { text } = await solver('go');
      if (judgedInPlay) await judge(text);
      return text;
    },
    reward: reward as never,
  }) as unknown as Team;

/** Plays an episode in which the judge is frozen, as in a run. */
function played(team: Team, sampler: ScriptedSampler, changes: Partial<RolloutContext> = {}): Promise<Episode> {
  const context = scriptedContext(team, sampler, changes);
  const { solver, judge } = context.agents as Required<RolloutContext['agents']>;
  return playEpisode(
    {
      ...context,
      agents: { solver: { ...solver, judges: false } as never, judge: { ...judge, frozen: true } as never },
    },
    { team, task: { id: 't', data: {} }, sample: 0, phase: 'training', step: 1 },
  );
}

const says = (by: Record<string, string>) => scriptedSampler(({ policy }) => by[policy] ?? '');
const grade = async ({ agents: { judge }, outcome }: Context) => Number((await judge(`grade ${outcome}`)).value ?? -1);

describe('a judge in the reward', () => {
  it('gives its reply to the reward, and its turn to the episode; no agent learns from it', async () => {
    const { turns, score, failure } = await played(teamOf(grade), says({ solver: 'a', judge: '7' }));
    expect(failure).toBeUndefined();
    expect(score.team).toBe(7);
    expect(turns.map(({ agent, turn, frozen, judging }) => [agent, turn, frozen, judging])).toEqual([
      ['solver', 0, undefined, undefined],
      ['judge', 1, true, true],
    ]);
    expect(turns[1]?.messages.at(-1)?.content).toBe('grade a');
    expect(turns[1]?.response.length).toBeGreaterThan(0);
  });

  it('uses the random stream that it would have in play: by its prompt, and the count of equal prompts', async () => {
    const ids = async (team: Team) => (await played(team, says({ solver: 'a', judge: '7' }))).turns.map(({ id }) => id);
    const askA = async ({ agents: { judge }, outcome }: Context) => Number((await judge(outcome)).value);
    const [solver, inReward] = await ids(teamOf(askA));
    const [again, inPlay, second] = await ids(teamOf(askA, true));
    expect([again, inPlay]).toEqual([solver, inReward]);
    expect(second).not.toBe(inPlay);
    expect(await ids(teamOf(askA, true))).toEqual([again, inPlay, second]);
  });

  it('answers several questions in the order of the calls, even if a later answer is ready first', async () => {
    const order: string[] = [];
    const team = teamOf(async ({ agents: { judge } }) => {
      const ask = async (text: string) => {
        const { value } = await judge(text);
        order.push(text);
        return Number(value);
      };
      return (await Promise.all(['1', '2', '3'].map(ask))).reduce((a, b) => a + b, 0);
    });
    const waits = [30, 10, 0];
    const slow = scriptedSampler(() => '1');
    const sampler: ScriptedSampler = {
      ...slow,
      policy: (name, context) => {
        const policy = slow.policy(name, context);
        return {
          ...policy,
          async generate(request, signal) {
            if (name === 'judge') await takesTime(waits.shift() ?? 0);
            return policy.generate(request, signal);
          },
        };
      },
    };
    const { score, turns } = await played(team, sampler);
    expect(score.team).toBe(3);
    expect(order).toEqual(['1', '2', '3']);
    expect(turns.map(({ turn }) => turn)).toEqual([0, 1, 2, 3]);
  });

  it('fails the episode if the agent trains, or the judge cannot answer', async () => {
    const asksSolver = teamOf(async ({ agents: { solver } }) => Number((await solver('well?')).text.length));
    const { failure } = await played(asksSolver, says({ solver: 'a', judge: '7' }));
    expect(failure).toEqual({
      reason: 'reward',
      message: "agent 'solver' trains; expected a frozen one to ask in the reward",
      agent: 'solver',
    });
    const broken = scriptedSampler(({ policy }) => {
      if (policy === 'judge') throw new Error('gone');
      return 'a';
    });
    expect((await played(teamOf(grade), broken)).failure).toEqual({
      reason: 'backend',
      message: 'judge: gone',
      agent: 'judge',
      scoring: true, // only the score is missing
    });
  });

  it.each(['that cannot answer', 'whose parser throws'])('%s is asked again with the reward', async (kind) => {
    let asked = 0;
    const fails = () => asked++ < 2;
    const sampler = scriptedSampler(({ policy }) => {
      if (policy === 'judge' && kind === 'that cannot answer' && fails()) throw new Error('busy');
      return policy === 'judge' ? '7' : 'a';
    });
    const parse = (text: string) => {
      if (kind === 'whose parser throws' && fails()) throw new SyntaxError('busy');
      return integer(text);
    };
    const team = { ...teamOf(grade), agents: { ...agents, judge: agent({ parse }) } } as unknown as Team;
    const whole = await played(team, sampler, { rewardRetries: 2 });
    expect([whole.failure, whole.score.team]).toEqual([undefined, 7]);
    asked = 0;
    const { failure } = await played(team, sampler, { rewardRetries: 1 });
    expect(failure).toMatchObject({ agent: 'judge', scoring: true, message: 'judge: busy (the last of 2 tries)' });
  });

  it('that cannot answer does not end an episode whose reward does without it', async () => {
    const sampler = scriptedSampler(({ policy }) => {
      if (policy === 'judge') throw new Error('gone');
      return 'a';
    });
    const { score, failure } = await played(
      teamOf(async (context) => grade(context).catch(() => 0.5)),
      sampler,
    );
    expect([score.team, failure]).toEqual([0.5, undefined]);
  });

  it('has no part in the limit of calls, which is for play: neither its calls nor those of a try that threw', async () => {
    let tries = 0;
    const again = teamOf(async (context) => {
      const graded = await grade(context);
      if (++tries < 3) throw new Error('not yet');
      return graded;
    });
    const limits = { maxTurns: 1, rewardRetries: 2 };
    const whole = await played(again, says({ solver: 'a', judge: '7' }), limits);
    expect(whole.failure).toBeUndefined();
    expect(whole.turns.map(({ agent }) => agent)).toEqual(['solver', 'judge', 'judge', 'judge']);
    tries = Number.NEGATIVE_INFINITY;
    const failed = await played(again, says({ solver: 'a', judge: '7' }), limits);
    expect(failed.failure).toMatchObject({ reason: 'reward', message: 'not yet (the last of 3 tries)' });
  });

  it('needs no step of the environment, and costs the team no call', async () => {
    const team = defineTeam({
      task: z.unknown(),
      agents,
      play: async ({ agents: { solver } }) => (await solver('go', { envStep: 0 })).text,
      reward: async ({ agents: { judge } }) => ((await judge('?')).valid ? 1 : 0),
    }) as unknown as Team;
    const { score, failure } = await played(team, says({ solver: 'a', judge: '7' }));
    expect([score.team, failure]).toEqual([1, undefined]);
  });

  it('cannot be called once the episode is over', async () => {
    let isOver = false;
    let late: Promise<unknown> | undefined;
    const team = teamOf(async ({ agents: { judge } }) => {
      const ask = () => {
        if (!isOver) return void setImmediate(ask);
        late = judge('late');
        late.catch(() => {});
      };
      ask();
      return 1;
    });
    const { turns } = await played(team, says({ solver: 'a', judge: '7' }));
    isOver = true;
    await eventually(() => late !== undefined);
    await expect(late).rejects.toThrow(/the episode is over: play and reward have returned/);
    expect(turns).toHaveLength(1);
  });

  it('gives its scripted answers in a test', async () => {
    const team = teamOf(grade);
    const { score } = await playScripted(team, {}, { solver: ['a'], judge: ['5'] });
    expect(score.team).toBe(5);
  });
});
