import { type Score, successOf, type Turn } from '@drmas/engine/nouns';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { z } from 'zod';
import { playScripted } from '../../runs/testing/play-scripted.js';
import { agent } from '../team/agent.js';
import { defineTeam, type Reward } from '../team/team.js';
import { type EpisodeVerdict, lessCallCosts, missingParts, scoreOf, withPartWeights } from './score.js';

const score = (reward: Reward, judgement?: EpisodeVerdict) => scoreOf(reward, ['solver', 'verifier'], judgement);

describe('a score', () => {
  it('sums the named parts of the team and of each agent, and keeps them', () => {
    expect(
      score({
        team: { correct: true, attempts: -0.25 },
        agents: { verifier: { verdicts: 0.5, early: true }, solver: 2 },
      }),
    ).toEqual({
      team: 0.75,
      agents: { verifier: 1.5, solver: 2 },
      parts: { correct: 1, attempts: -0.25 },
      agentParts: { verifier: { verdicts: 0.5, early: 1 } },
    });
  });

  it('has metrics if the episode has something to measure', () => {
    expect(score(1, { metrics: { hit: true, share: 0.5, verdict: undefined } }).metrics).toEqual({
      hit: 1,
      share: 0.5,
    });
    expect(score(1)).not.toHaveProperty('metrics');
  });

  it.each<[string, Reward, EpisodeVerdict, string]>([
    ['nothing', null as unknown as Reward, {}, 'the reward is null, expected a finite number'],
    ['a part', { team: 1, agents: { verifier: { early: Number.NaN } } }, {}, "the part 'early' is NaN"],
    ['a metric', 1, { metrics: { hit: Number.NaN } }, "the metric 'hit' is NaN, expected a finite number"],
    ['a success', 1, { success: 1.5 }, 'the success is 1.5, expected true, false or a number from 0 to 1'],
    ['an agent', { team: 1, agents: { judge: 1 } }, {}, "expected one of the agents solver, verifier, got 'judge'"],
  ])('refuses %s that makes no sense', (_, reward, judgement, message) => {
    expect(() => score(reward, judgement)).toThrow(message);
  });
});

describe('the success of an episode', () => {
  it.each<[string, Reward, EpisodeVerdict, number]>([
    ['the verdict of the team', { correct: true }, { success: false }, 0],
    ['the fraction that the team gives', 0, { success: 0.25 }, 0.25],
    ["the part `correct`, despite other parts of the team's reward", { correct: true, attempts: -0.5 }, {}, 1],
    ["the part `correct` of 0, despite other parts of the team's reward", { correct: 0, polite: 3 }, {}, 0],
    ['a part `correct` within 0 and 1', { team: { correct: 5 } }, {}, 1],
    ['a reward of 1', 1, {}, 1],
    ['a reward above 1', 3.7, {}, 1],
    ['no reward below 1', { hit: 0.9 }, {}, 0],
  ])('is %s', (_, reward, judgement, success) => {
    expect(successOf({ score: score(reward, judgement) })).toBe(success);
  });

  it('comes from the team, as metrics do, by task, outcome and turns; an error there fails the episode', async () => {
    const team = (limit: number) =>
      defineTeam({
        task: z.object({ goal: z.number() }),
        agents: { runner: agent({ parse: Number }) },
        play: async ({ agents: { runner } }) => ({ ran: (await runner('go')).value ?? 0 }),
        reward: ({ outcome }) => outcome.ran,
        success: async ({ outcome, task }) => outcome.ran / task.goal,
        metrics: ({ outcome, episode: { turns } }) => {
          if (outcome.ran > limit) throw new Error('too far');
          return { turns: turns.length };
        },
      });
    const episode = await playScripted(team(50), { goal: 80 }, { runner: ['20'] });
    expect(episode.score).toEqual({ team: 20, agents: {}, parts: {}, success: 0.25, metrics: { turns: 1 } });
    const failed = playScripted(team(5), { goal: 80 }, { runner: ['20'] });
    await expect(failed).rejects.toMatchObject({ reason: 'reward', message: 'too far' });
  });
});

describe('the cost of calls', () => {
  const turn = (agent: string, tokens: number) => ({ agent, response: new Array(tokens).fill(7) }) as unknown as Turn;
  const turns = [turn('solver', 3), turn('verifier', 1), turn('solver', 5)];
  const less = (reward: Reward, agents: Parameters<typeof lessCallCosts>[2], judgement?: EpisodeVerdict) =>
    lessCallCosts(score(reward, judgement), turns, agents);

  it("reduces the team's reward as a separate part, but not the success or the rewards of agents", () => {
    const solver = { callCost: 0.25, tokenCost: 0.125 };
    expect(less({ team: { correct: true, polite: 0.5 }, agents: { verifier: 2 } }, { solver, verifier: {} })).toEqual({
      team: 0,
      agents: { verifier: 2 },
      parts: { correct: 1, polite: 0.5, calls: -1.5 },
      success: 1,
    });
  });

  it('is listed beside the whole reward if that has no parts', () => {
    expect(less(1, { verifier: { callCost: 0.5 } })).toMatchObject({ parts: { outcome: 1, calls: -0.5 }, success: 1 });
    expect(less(3, { judge: { callCost: 1 } })).toMatchObject({ team: 3, parts: { outcome: 3, calls: 0 }, success: 1 });
    expect(less(1, { solver: { callCost: 9 } }, { success: 0.5 }).success).toBe(0.5);
  });

  it('changes nothing if there is no price', () => {
    const plain = score({ correct: true });
    expect(lessCallCosts(plain, turns, { solver: {}, verifier: { callCost: 0, tokenCost: 0 } })).toBe(plain);
  });

  it('is the same for calls in any order, to the last bit, and the parts sum to the reward', () => {
    const price = fc.double({ min: 0, max: 10, noNaN: true });
    const played = fc.array(fc.tuple(fc.constantFrom('solver', 'verifier'), fc.nat(40)), { maxLength: 12 });
    fc.assert(
      fc.property(price, price, price, played, (solverCall, solverToken, verifierCall, calls) => {
        const agents = {
          solver: { callCost: solverCall, tokenCost: solverToken },
          verifier: { callCost: verifierCall },
        };
        const all = calls.map(([agent, tokens]) => turn(agent, tokens));
        const charged = lessCallCosts(score({ correct: true }), all, agents);
        expect(lessCallCosts(score({ correct: true }), all.toReversed(), agents)).toEqual(charged);
        if (solverCall + solverToken + verifierCall === 0) return;
        expect(charged.parts.correct).toBe(1);
        expect(1 + (charged.parts.calls as number)).toBe(charged.team);
        expect(charged.team).toBeLessThanOrEqual(1);
        const ofSolver = calls.filter(([agent]) => agent === 'solver');
        const tokens = ofSolver.reduce((sum, [, count]) => sum + count, 0);
        const cost =
          ofSolver.length * solverCall + tokens * solverToken + (calls.length - ofSolver.length) * verifierCall;
        expect(charged.team).toBeCloseTo(1 - cost, 9);
      }),
    );
  });

  it('does not mix with a part of that name, and stays finite', () => {
    expect(() => less({ calls: 1 }, { solver: { callCost: 1 } })).toThrow("the part 'calls' is the cost of calls");
    expect(() => less(1, { solver: { callCost: 1e300 } })).toThrow('the reward less the cost of calls is');
  });
});

const number = fc.double({ min: -10, max: 10, noNaN: true });
const parts = fc.dictionary(fc.constantFrom('correct', 'attempts', 'calls'), number, { minKeys: 1 });
const weights = fc.dictionary(fc.constantFrom('correct', 'calls', 'other'), fc.double({ min: 0, max: 4, noNaN: true }));

describe('weights of the parts of a reward', () => {
  it('make the reward their weighted sum, and leave the parts and the success alone', () => {
    fc.assert(
      fc.property(parts, weights, (named, weighed) => {
        const score = scoreOf(named, []);
        const { team, parts, success } = withPartWeights(score, weighed);
        const sum = Object.entries(named).reduce((total, [name, value]) => total + value * (weighed[name] ?? 1), 0);
        expect(team).toBeCloseTo(sum, 9);
        expect(parts).toEqual(score.parts);
        expect(success).toBe(successOf({ score }));
      }),
    );
  });

  it('do not change a reward without names, and change nothing if there are no weights', () => {
    const plain = scoreOf(0.5, []);
    const named = scoreOf({ correct: 1 }, []);
    expect(withPartWeights(plain, { correct: 2 })).toBe(plain);
    expect(withPartWeights(named, undefined)).toBe(named);
  });

  it('leave rewards of agents as they are', () => {
    const score = scoreOf({ team: { correct: 1, attempts: -0.1 }, agents: { verifier: 0.2 } }, ['verifier']);
    expect(withPartWeights(score, { attempts: 0 })).toMatchObject({ team: 1, agents: { verifier: 0.2 }, success: 1 });
  });

  it('fail the episode if the sum is too large for statistics', () => {
    expect(() => withPartWeights(scoreOf({ correct: 1 }, []), { correct: 1e31 })).toThrow(/weighted parts/);
  });

  it('are distinguished from weights of parts that no episode earns', () => {
    const score: Score = scoreOf({ correct: 1 }, []);
    expect(missingParts([{ score }], { correct: 0.5, corect: 0.5 })).toEqual(['corect']);
    expect(missingParts([{ score }])).toEqual([]);
    expect(missingParts([{ score }], { constructor: 0.5 })).toEqual(['constructor']);
  });
});
