// @module-tag verify
/** The advice of planted-causes.test.ts on another team: a seller names a price, and a buyer answers. */

import { choiceTable } from '@drmas/engine/model';
import { describe, expect, it } from 'vitest';
import { z } from 'zod';
import type { RecipeInput } from '../../src/method/recipe/define.js';
import { agent } from '../../src/teams/team/agent.js';
import { oneOf } from '../../src/teams/team/parsers.js';
import { defineTeam, type Reward, type Team } from '../../src/teams/team/team.js';
import { saidIn } from '../support/said-in-run.js';
import { temporaryRoot } from '../support/tiny-run.js';

const root = temporaryRoot();
const PRICES = ['1', '2', '3', '4', '5', '6'] as const;
const WORDS = ['yes', 'no', 'hm'] as const;
const LIMITS = ['L2', 'L3', 'L4', 'L5'] as const;

interface Sale {
  readonly price: unknown;
  readonly answer: unknown;
  readonly limit: number;
  readonly chance: number;
}
type Ask = (prompt: string) => Promise<{ readonly text: string; readonly value: unknown }>;

interface Planted {
  readonly between?: (
    asks: { readonly seller: Ask; readonly buyer: Ask },
    chance: number,
  ) => Promise<unknown> | unknown;
  readonly reward?: (sale: Sale) => Reward;
  readonly seller?: object;
  readonly buyer?: object;
  readonly policy?: object;
  readonly training?: object;
  readonly changes?: object;
  /** The tokens of an answer. */
  readonly length?: number;
  readonly skipsBuyer?: true;
  readonly said: Readonly<Record<string, RegExp>>;
}

/** A sale at the limit is right; a cheaper one is worth less. */
const worth = ({ price, answer, limit }: Sale): number => {
  const asked = Number(price);
  const sold = answer === 'yes' && asked <= limit;
  return sold ? (asked === limit ? 1 : (0.5 * asked) / limit) : 0;
};

/** A sale wins by chance, the right price more often. */
const lottery = (sale: Sale): number => Number(sale.chance < (worth(sale) === 1 ? 0.7 : 0.3));

function teamOf({ between = () => {}, reward = worth, seller = {}, buyer = {}, skipsBuyer }: Planted): Team {
  return defineTeam({
    name: 'market',
    task: z.object({ limit: z.number() }),
    agents: {
      seller: agent({ parse: oneOf(...PRICES), sampling: { maxTokens: 1 }, ...seller } as object),
      buyer: agent({ parse: oneOf(...WORDS), sampling: { maxTokens: 1 }, ...buyer } as object),
    },
    async play({ task: { limit }, agents, random }): Promise<Sale> {
      const asks = agents as unknown as { seller: Ask; buyer: Ask };
      const chance = random.uniform();
      const { value: price } = await asks.seller(`L${limit}`);
      await between(asks, chance);
      if (skipsBuyer) return { price, answer: undefined, limit, chance };
      const { value: answer } = await asks.buyer(Number(price) <= limit ? 'fits' : 'high');
      return { price, answer, limit, chance };
    },
    reward: ({ outcome }) => reward(outcome),
  }) as unknown as Team;
}

const tasksOf = (name: string) => ({
  name,
  load: async (split: 'train' | 'test') => ({
    name,
    size: 12,
    at: (index: number) => ({ id: `${split}${index}`, data: { limit: 2 + (index % 4), row: `${split}${index}` } }),
  }),
});

function saidBy(planted: Planted) {
  const { length = 1 } = planted;
  const policy = (model: object) => ({ model, optimizer: { type: 'adamw', learningRate: 0.1 }, ...planted.policy });
  return saidIn(root, {
    team: teamOf(planted),
    tasks: tasksOf('market'),
    policies: {
      seller: policy(choiceTable({ choices: [...PRICES], features: [...LIMITS], length })),
      buyer: policy(choiceTable({ choices: [...WORDS], features: ['fits', 'high'] })),
    },
    training: {
      steps: 12,
      tasksPerStep: 4,
      groupSize: 8,
      checkpointEvery: 40,
      keepEpisodes: 1,
      rewardRetries: 0,
      ...planted.training,
    },
    evaluation: { every: 40, tasks: 4, samples: 2 },
    ...planted.changes,
  } as unknown as RecipeInput);
}

const long = { steps: 32 };
const cases: Readonly<Record<string, Planted>> = {
  'no fault': { training: long, said: {} },
  'a learning rate far too low': {
    training: long,
    policy: { optimizer: { type: 'sgd', learningRate: 1e-6 } },
    said: { unmoved: /learning rate is too low/ },
  },
  'a learning rate far too high': {
    training: long,
    reward: lottery,
    policy: { optimizer: { type: 'adamw', learningRate: 300 } },
    said: { 'nothing-learnt': /lower learning rate/, 'entropy-collapse': /a lower learning rate/ },
  },
  'a reward by chance': {
    training: long,
    policy: { optimizer: { type: 'sgd', learningRate: 0.02 } },
    reward: ({ chance }) => chance,
    said: { unmoved: /looks like chance/ },
  },
  'a constant reward': { reward: () => 0.25, said: { 'nothing-learnt': /earn 0\.25, whatever the agents write/ } },
  'texts that no parser reads': {
    buyer: { parse: oneOf('sold') },
    said: { 'nothing-learnt': /the parser of 'buyer' refuses all outputs/ },
  },
  'a loop': {
    between: async ({ buyer }) => {
      for (;;) await buyer('high');
    },
    training: { maxTurns: 6 },
    said: { 'evaluation.failures': /more than 6 calls/, end: /too-many-turns/ },
  },
  'tasks that are too hard': {
    reward: ({ price }) => Number(Number(price) > 6),
    said: { 'nothing-learnt': /none of them succeeds/ },
  },
  'tasks that are too easy': {
    reward: ({ price }) => Number(Number(price) > 0),
    said: { 'nothing-learnt': /all of them succeed/ },
  },
  'an own reward with the wrong sign': {
    reward: (sale) => ({ team: worth(sale), agents: { seller: -worth(sale) } }),
    training: long,
    said: { 'reward.opposed': /turn the sign/ },
  },
  'a KL far too strong': {
    training: long,
    policy: { kl: { in: 'loss', coefficient: 500 } },
    said: { unmoved: /KL penalty holds it/ },
  },
  'groups of one': { training: { ...long, groupSize: 1, tasksPerStep: 12 }, said: { settings: /groupSize is 1/ } },
  'a judge that is down': {
    reward: () => {
      throw new Error('HTTP 503');
    },
    said: { 'evaluation.failures': /503/, end: /\(reward\) HTTP 503/ },
  },
  'a service that often fails': {
    between: (_, chance) => {
      if (chance < 0.6) throw new Error('ETIMEDOUT of the shop');
    },
    said: { 'evaluation.failures': /ETIMEDOUT/, 'episodes.failing': /ETIMEDOUT/, end: /ETIMEDOUT/ },
  },
  'stale samples': {
    training: long,
    changes: { rollout: { staleness: 4 } },
    policy: { optimizer: { type: 'adamw', learningRate: 5 }, epochs: 4 },
    said: { 'nothing-learnt': /nearly certain of each text.*A lower learning rate/ },
  },
  'an agent that is frozen by mistake': {
    changes: { agents: { seller: { rewardWeight: 0 } } },
    said: { settings: /^the policy 'seller' learns from no reward, because agents\.seller\.rewardWeight is 0/ },
  },
  'an agent that is never called': {
    training: long,
    skipsBuyer: true,
    reward: ({ price, limit }) => Number(Number(price) === limit),
    said: { 'agent-learns-nothing': /buyer: it has learnt nothing for \d+ steps: the team does not call it/ },
  },
  'answers that are cut off': {
    length: 2,
    seller: { parse: (text: string) => /^[1-6]{2}$/.exec(text)?.[0] },
    buyer: { parse: (text: string) => text },
    said: { 'nothing-learnt': /all outputs of 'seller' are cut off at 1 tokens/ },
  },
};

describe('a run with a planted cause says the cause first, and nothing else', () => {
  it.concurrent.each(Object.entries(cases))('%s', async (name, planted) => {
    const { said, success } = await saidBy(planted);
    const codes = [...new Set(said.map(({ code }) => code))];
    expect(codes, JSON.stringify(said, null, 1)).toEqual(Object.keys(planted.said));
    for (const { code, message } of said) expect(message, code).toMatch(planted.said[code] as RegExp);
    if (name === 'no fault') expect(success[1]).toBeGreaterThan(success[0] + 0.1);
  });
});
