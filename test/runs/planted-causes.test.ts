/**
 * Small runs with a planted cause: what drmas says names the cause first, and no other one. The advice is all warnings
 * of the run, the reason why it ended, and the lines about agents that did not move.
 */

import { choiceTable } from '@drmas/engine/model';
import { assistant, type Message, user } from '@drmas/engine/nouns';
import { describe, expect, it } from 'vitest';
import { z } from 'zod';
import type { RecipeInput } from '../../src/method/recipe/define.js';
import { agent } from '../../src/teams/team/agent.js';
import { oneOf } from '../../src/teams/team/parsers.js';
import { defineTeam, type Reply, type Reward, type Team } from '../../src/teams/team/team.js';
import { saidIn } from '../support/said-in-run.js';
import { temporaryRoot } from '../support/tiny-run.js';

const root = temporaryRoot();
const LETTERS = ['a', 'b', 'c', 'd'] as const;
type Letter = (typeof LETTERS)[number];
const task = z.object({ right: z.enum(LETTERS) });

const tasksOf = (idOf: (index: number) => string): RecipeInput['tasks'] => ({
  name: 'letters',
  load: async (split: string) => ({
    name: 'letters',
    size: 16,
    at: (index: number) => ({
      id: split === 'train' ? idOf(index) : `new ${idOf(index)}`,
      data: { right: LETTERS[index % 4] as Letter },
    }),
  }),
});

type Answer = Pick<Reply, 'id' | 'text' | 'content' | 'toolCalls' | 'value'>;
type Ask = Readonly<Record<'solver' | 'checker', (question: string | readonly Message[]) => Promise<Answer>>>;
interface Played {
  readonly one?: unknown;
  readonly two?: unknown;
}

/** A case's changes to a run that learns. */
interface Planted {
  readonly play?: (ask: Ask, question: string, chance: number) => Promise<Played>;
  readonly reward?: (right: Letter, played: Played) => Reward;
  readonly solver?: Parameters<typeof agent>[0];
  /** Texts that agents read besides the questions. */
  readonly texts?: readonly string[];
  /** The letters of an answer. */
  readonly length?: number;
  readonly policy?: object;
  readonly advantage?: RecipeInput['advantage'];
  readonly loss?: RecipeInput['loss'];
  readonly training?: object;
  readonly rollout?: object;
  /** The ids of the tasks, by their places. */
  readonly ids?: (index: number) => string;
  /** The team's success, if it is not its reward. */
  readonly success?: (right: Letter, played: Played) => number;
  /** A team of two agents: the checker reads what the solver wrote. */
  readonly two?: true;
  /** A run whose kind another case shows: the daily tests leave it out. */
  readonly slow?: true;
  /** The messages by their codes, in the order in which the codes first occur. */
  readonly said: Readonly<Record<string, RegExp>>;
}

const parse = oneOf(...LETTERS);

/** A question is the name of a feature of the table. */
const featureOf = (letter: string) => letter.toUpperCase();

function teamOf({ play, reward, solver = {}, two, success }: Planted): Team {
  const player = (settings: Planted['solver'] = {}) =>
    agent({ parse, sampling: { maxTokens: 1 }, ...settings } as object);
  return defineTeam({
    name: 'letters',
    task,
    agents: { solver: player(solver), ...(two && { checker: player() }) },
    async play({ task: { right }, agents, random }): Promise<Played> {
      const ask = agents as unknown as Ask;
      if (play !== undefined) return play(ask, featureOf(right), random.uniform());
      const { value: one, text } = await ask.solver(featureOf(right));
      if (two === undefined) return { one };
      return { one, two: (await ask.checker(featureOf(text))).value };
    },
    reward: ({ task: { right }, outcome }) =>
      reward === undefined ? Number((two ? outcome.two : outcome.one) === right) : reward(right, outcome),
    ...(success && {
      success: ({
        task: { right },
        outcome,
      }: {
        readonly task: { readonly right: Letter };
        readonly outcome: Played;
      }) => success(right, outcome),
    }),
  }) as unknown as Team;
}

/** Runs a case. */
function saidBy(planted: Planted) {
  const { policy, advantage, loss, training, rollout, ids = String, texts = [], length = 1 } = planted;
  const team = teamOf(planted);
  const model = choiceTable({ choices: [...LETTERS], features: [...LETTERS.map(featureOf), ...texts], length });
  const policies = Object.keys(team.agents).map((name) => {
    return [name, { model, optimizer: { type: 'adamw', learningRate: 0.1 }, ...policy }] as const;
  });
  const input = {
    team,
    tasks: tasksOf(ids),
    policies: Object.fromEntries(policies),
    training: {
      steps: 12,
      tasksPerStep: 4,
      groupSize: 8,
      checkpointEvery: 30,
      keepEpisodes: 1,
      rewardRetries: 0,
      ...training,
    },
    evaluation: { every: 30, tasks: 4, samples: 2 },
    ...(rollout && { rollout }),
    ...(advantage && { advantage }),
    ...(loss && { loss }),
  };
  return saidIn(root, input as RecipeInput);
}

const tooHard =
  /none of them succeeds\. If a right answer would earn no more, mend the team's reward\. Else: .*easier tasks/;
const tooEasy =
  /all of them succeed\. If a wrong answer would succeed too, mend the team's reward\. Else: harder tasks/;
const noComparison = /earn different rewards, but the estimator gives all turns the advantage 0.*another estimator/;
const independent = /If that does not depend on what the agents write, mend the team's reward or a parser\. Else: /;
const collapse = /a lower learning rate or an entropy bonus/;
const certain = /training has made 'solver' nearly certain of each text.*A lower learning rate/;
const reward = (value: Reward) => ({ reward: () => value });

/** Enough steps for advice that compares the beginning of a run with its end. */
const long = { steps: 31 };

/** A right answer wins more often than a wrong one, so that a policy should not decide in the first steps. */
const lottery: Pick<Planted, 'play' | 'reward'> = {
  play: async ({ solver }, question, chance) => {
    const { value } = await solver(question);
    return { one: Number(chance < (featureOf(String(value)) === question ? 0.7 : 0.3)) };
  },
  reward: (_, { one }) => one as number,
};

/** Messages in the module, which all episodes share. */
const kept: Message[] = [];

/** The agent calls a tool, which answers with an error: always, or as often as `share` says. */
const withTool = (share: number): Pick<Planted, 'play' | 'texts'> => ({
  texts: ['error: connection refused'],
  play: async ({ solver }, question, chance) => {
    const asked = await solver(question);
    const content = chance < share ? 'error: connection refused' : question;
    const result = { role: 'tool', content, toolCallId: 'call' } as const;
    const { value: one } = await solver([user(question), assistant(asked.text), result]);
    return { one: content === question ? one : undefined };
  },
});

/** The reward is drawn, whatever the agent writes. */
const byChance: Pick<Planted, 'play' | 'reward'> = {
  play: async ({ solver }, question, chance) => {
    await solver(question);
    return { one: Number(chance < 0.5) };
  },
  reward: (_, { one }) => one as number,
};

/** Rewards that the team's own reward does not show. */
const earnedApart: Readonly<Record<string, NonNullable<Planted['reward']>>> = {
  agents: (right, { one }) => ({ team: 0, agents: { solver: Number(one === right) } }),
  turns: (right, { one }) => ({ team: 0, turns: [{ turn: 0, value: Number(one === right) }] }),
};

const cases: Readonly<Record<string, Planted>> = {
  'no fault': { training: long, said: {}, slow: true },
  'no fault, rewards by chance': { ...lottery, training: long, said: {}, slow: true },
  'no fault, two agents': { training: long, two: true, said: {} },
  'no fault, an own reward': {
    slow: true,
    training: long,
    two: true,
    reward: (right, { one, two }) => ({ team: Number(two === right), agents: { solver: Number(one === right) } }),
    said: {},
  },
  'a learning rate far too high': {
    slow: true,
    ...lottery,
    policy: { optimizer: { type: 'adamw', learningRate: 100 } },
    training: long,
    said: { 'entropy-collapse': collapse, 'nothing-learnt': certain },
  },
  'a learning rate far too high, by SGD': {
    slow: true,
    ...lottery,
    policy: { optimizer: { type: 'sgd', learningRate: 1e4 }, clipNorm: 0 },
    training: long,
    said: { 'entropy-collapse': collapse },
  },
  'a learning rate far too low': {
    training: long,
    policy: { optimizer: { type: 'adamw', learningRate: 1e-6 } },
    said: { unmoved: /learning rate is too low/ },
  },
  'a warm-up longer than the run': {
    slow: true,
    training: long,
    policy: { warmupSteps: 100_000 },
    said: {
      settings: /warmupSteps is 100000, but the run makes at most 31 updates/,
      unmoved: /learning rate is too low/,
    },
  },
  'a schedule that ends long before the run': {
    slow: true,
    training: long,
    policy: { warmupSteps: 0, schedule: { type: 'linear', updates: 2 } },
    said: {
      settings: /schedule has brought the learning rate to 0 after 2 of at most 31 updates/,
      unmoved: /learning rate is too low/,
    },
  },
  'a KL penalty far too large': {
    slow: true,
    training: long,
    policy: { kl: { in: 'loss', coefficient: 300 } },
    said: { unmoved: /Its KL penalty holds it/ },
  },
  'a KL penalty far too large, in the reward': {
    slow: true,
    training: long,
    policy: { kl: { in: 'reward', kind: 'k1', coefficient: 300 } },
    said: { unmoved: /Its KL penalty holds it/ },
  },
  'an entropy bonus far too large': {
    slow: true,
    training: long,
    policy: { entropyCoefficient: 1000 },
    said: { unmoved: /hardly moves\. Its entropy bonus holds it: policies\.solver\.entropyCoefficient is 1000/ },
  },
  'a clipNorm far too small': {
    slow: true,
    training: long,
    policy: { clipNorm: 1e-6, optimizer: { type: 'sgd', learningRate: 0.1 } },
    said: { unmoved: /hardly moves\. Clipping holds it: policies\.solver\.clipNorm is 0\.000001/ },
  },
  'a clipNorm far too small, by AdamW': {
    slow: true,
    training: long,
    policy: { clipNorm: 1e-12 },
    said: { unmoved: /hardly moves\. Clipping holds it: policies\.solver\.clipNorm is 1e-12/ },
  },
  'a small clipNorm under AdamW, which does not depend on it': {
    slow: true,
    training: long,
    policy: { clipNorm: 1e-5, optimizer: { type: 'adamw', learningRate: 1e-6 } },
    said: { unmoved: /hardly moves\. Mostly its learning rate is too low/ },
  },
  'rewards by chance alone': {
    training: long,
    ...byChance,
    policy: { optimizer: { type: 'sgd', learningRate: 0.01 } },
    said: { unmoved: /hardly moves\. Its reward looks like chance: .*\(\d+ %\)\. Look at the team's reward/ },
  },
  'rewards by chance alone, two agents': {
    slow: true,
    training: long,
    two: true,
    play: async ({ solver, checker }, question, chance) => {
      const { text } = await solver(question);
      await checker(featureOf(text));
      return { one: Number(chance < 0.5) };
    },
    reward: (_, { one }) => one as number,
    policy: { optimizer: { type: 'sgd', learningRate: 0.01 } },
    said: { unmoved: /Its reward looks like chance/ },
  },
  'a learning rate far too low, rewards partly by chance': {
    slow: true,
    training: { steps: 40 },
    ...lottery,
    policy: { optimizer: { type: 'adamw', learningRate: 1e-6 } },
    said: { unmoved: /learning rate is too low/ },
  },
  'rewards by chance alone, at a learning rate that moves': { slow: true, training: long, ...byChance, said: {} },
  'a reward that is always 0': { slow: true, ...reward(0), said: { 'nothing-learnt': tooHard } },
  'a reward that is always 1': { slow: true, ...reward(1), said: { 'nothing-learnt': tooEasy } },
  'a reward that is always one half': {
    ...reward(0.5),
    said: { 'nothing-learnt': /all 32 episodes earn 0\.50, whatever the agents write\. Look at the team's reward/ },
  },
  'tasks that are too hard': { reward: (_, { one }) => Number(one === 'e'), said: { 'nothing-learnt': tooHard } },
  'tasks that are too easy': { reward: (_, { one }) => Number(one !== 'e'), said: { 'nothing-learnt': tooEasy } },
  'tasks that are too easy, behind a filter': {
    slow: true,
    ...reward(1),
    training: { steps: 8, filter: { type: 'equal-outcomes' } },
    said: { 'nothing-learnt': new RegExp(`training\\.filter left none of 4 groups: .*${tooEasy.source}`) },
  },
  'an estimator that compares turns of one episode, and each has one': {
    slow: true,
    advantage: { type: 'hierarchical-grpo', episodeAgents: ['solver'] },
    said: { 'nothing-learnt': noComparison },
  },
  'a bound that no reward exceeds': {
    advantage: { type: 'rejection', above: 5 },
    loss: { type: 'cross-entropy' },
    said: { 'nothing-learnt': noComparison },
  },
  ...Object.fromEntries(
    Object.entries(earnedApart).flatMap(([kind, reward]) => [
      [
        `rewards of ${kind} alone, behind a filter that compares the team's`,
        {
          reward,
          training: { steps: 8, filter: { type: 'equal-outcomes' } },
          said: {
            'nothing-learnt': /left none of 4 groups: the team earns the same .* turns of 'solver' earn different/,
          },
        },
      ],
      [
        `rewards of ${kind} alone, under an estimator that compares the team's`,
        {
          reward,
          advantage: { type: 'grpo', episodeScore: 'outcome' },
          said: { 'nothing-learnt': /the team earns the same .* turns of 'solver' earn different .*advantage 0: with/ },
        },
      ],
    ]),
  ),
  'a filter that compares the success, beside rewards below it': {
    reward: (right, { one }) => Number(one === right) / 4,
    training: { steps: 8, filter: { type: 'equal-outcomes', score: 'success' } },
    said: {
      'nothing-learnt': /left none of 4 groups: the episodes of \d of 4 .* training\.filter\.score, or no filter/,
    },
  },
  'a play that returns nothing': {
    play: async ({ solver }, question) => void (await solver(question)) as never,
    reward: (right, played) => Number((played as Played | undefined)?.one === right),
    said: { 'outcome.missing': /`play` returned nothing in 32 of 32 episodes.*`return` it/, 'nothing-learnt': tooHard },
  },
  'messages that episodes share': {
    play: async ({ solver }, question) => {
      const { id, content, toolCalls, value: one } = await solver([...kept.slice(-1), user(question)]);
      kept.push(assistant({ id, content, toolCalls }));
      return { one };
    },
    said: { 'memory.shared': /step [12]: in \d+ of 32 episodes, .*'solver' reads answers of another episode/ },
  },
  'a client that throws a plain object': {
    play: async () => {
      throw { code: 429, message: 'slow down' };
    },
    said: { 'evaluation.failures': /\(error\) slow down/, end: /\(error\) slow down/ },
  },
  'a reward that depends on the task alone': {
    reward: (right) => ({ a: 0, b: 0.25, c: 0.5, d: 1 })[right],
    said: { 'nothing-learnt': independent },
  },
  'a parser that reads the same from each text': {
    slow: true,
    solver: { parse: () => 'a' },
    training: { tasksPerStep: 16 },
    said: { 'nothing-learnt': independent },
  },
  'a success with the wrong sign': {
    success: (right, { one }) => Number(one !== right),
    said: { 'reward.opposed': /the team's reward falls if the team succeeds .*or what `success` returns/ },
  },
  'no fault, a reward from 0 to 100': {
    slow: true,
    training: long,
    reward: (right, { one }) => 100 * Number(one === right),
    said: {},
  },
  'a reward that is always one half, but for rounding': {
    slow: true,
    reward: (right, { one }) => 0.5 + (one === right ? 1e-11 : 0),
    said: { 'nothing-learnt': /all 32 episodes earn 0\.50, whatever the agents write/ },
  },
  'a part of the reward that weighs nothing': {
    reward: (right, { one }) => ({ correct: Number(one === right) }),
    training: { partWeights: { correct: 0 } },
    said: { 'nothing-learnt': /although their success is \d+ %\. Mend the team's reward, or the weights of its parts/ },
  },
  'a spread that no rewards reach': {
    slow: true,
    advantage: { type: 'drmas', minimumSpread: 10 },
    said: { 'nothing-learnt': noComparison },
  },
  'an epsilon of the estimator far too large': {
    slow: true,
    training: long,
    advantage: { type: 'drmas', epsilon: 1e5 },
    policy: { optimizer: { type: 'sgd', learningRate: 0.1 } },
    said: { unmoved: /hardly moves\. Its advantages are at most [\d.e-]+: .*such as advantage\.epsilon/ },
  },
  'a weight decay far too large': {
    slow: true,
    training: long,
    policy: { optimizer: { type: 'adamw', learningRate: 0.1, weightDecay: 9 } },
    said: { unmoved: /hardly moves\. Its weight decay holds it: policies\.solver\.optimizer\.weightDecay is 9/ },
  },
  'a prompt without the question': {
    slow: true,
    training: long,
    texts: ['?'],
    play: async ({ solver }) => ({ one: (await solver('?')).value }),
    said: { unmoved: /It begins each task with the same prompt\. .*write the task into its prompt/ },
  },
  'a limit of calls that is too small': {
    two: true,
    training: { maxTurns: 1 },
    said: { 'evaluation.failures': /more than 1 calls/, end: /set a higher training\.maxTurns/ },
  },
  'tasks with one id': { ids: () => 'same', said: { end: /two problems with the id 'new same'/ } },
  'a right answer whose reward is a text': {
    reward: (right, { one }) => (one === right ? ('1' as unknown as number) : 0),
    said: {
      'evaluation.failures': /the reward is the text "1"/,
      'nothing-learnt': /none of them succeeds, and \d+ of 32 episodes failed\. See first why episodes fail/,
    },
  },
  'a parser that never matches': {
    solver: { parse: oneOf('yes', 'no') },
    said: { 'nothing-learnt': /the parser of 'solver' refuses all outputs/ },
  },
  'a parser that never matches, with a penalty': {
    slow: true,
    solver: { parse: oneOf('yes', 'no'), invalidPenalty: 0.1 },
    said: { 'nothing-learnt': /the parser of 'solver' refuses all outputs/ },
  },
  'a parser that throws': {
    solver: { parse: (text: string) => JSON.parse(text) },
    said: {
      'evaluation.failures': /is not valid JSON/,
      end: /every episode of step 1 failed alike: .*is not valid JSON.*\n.*\n +at Object\.parse .*planted-causes\.test\.ts:\d+/,
    },
  },
  'a parser that reads a match that is not there': {
    slow: true,
    solver: { parse: (text: string) => (/answer: (.)/.exec(text) as RegExpExecArray)[1] },
    said: {
      'evaluation.failures': /null.*\n +at Object\.parse .*planted-causes\.test\.ts:\d+/,
      end: /every episode of step 1 failed alike: .*null.*\n +at Object\.parse .*planted-causes\.test\.ts:\d+/,
    },
  },
  'a parser that calls a function that is not there': {
    solver: { parse: (text: string) => (text as unknown as { read: () => string }).read() },
    said: {
      'evaluation.failures': /text.read is not a function\n +at Object\.parse .*planted-causes\.test\.ts:\d+/,
      end: /text.read is not a function\n +at Object\.parse .*planted-causes\.test\.ts:\d+/,
    },
  },
  'answers that are cut off': {
    length: 2,
    solver: { parse: (text: string) => /^[a-d]{2}$/.exec(text)?.[0] },
    said: {
      'nothing-learnt': /all outputs of 'solver' are cut off at 1 tokens\. Raise agents\.solver\.sampling\.maxTokens/,
    },
  },
  'an agent that is never called': {
    training: long,
    two: true,
    play: async ({ solver }, question) => ({ two: (await solver(question)).value }),
    said: { 'agent-learns-nothing': /checker: it has learnt nothing for \d+ steps: the team does not call it/ },
  },
  'no agent that is called': {
    play: async () => ({ one: 'a' }),
    said: { 'nothing-learnt': /`play` called no agent in any of 32 episodes/ },
  },
  'calls that are not awaited': {
    play: async ({ solver }, question) => {
      void solver(question);
      return { one: 'a' };
    },
    said: { 'evaluation.failures': /`await` the call/, end: /`await` the call/ },
  },
  'an own reward with the wrong sign': {
    two: true,
    reward: (right, { two }) => ({ team: Number(two === right), agents: { checker: Number(two !== right) } }),
    said: { 'reward.opposed': /the own reward of 'checker' falls if the team succeeds .*turn the sign of its reward/ },
  },
  'rewards below 0': {
    reward: (right, { one }) => Number(one === right) - 2,
    said: { 'failures.pay': /an episode that fails earns 0, so policies may learn to fail/ },
  },
  'an agent that loops': {
    play: async ({ solver }, question) => {
      for (;;) await solver(question);
    },
    training: { maxTurns: 4 },
    said: {
      'evaluation.failures': /more than 4 calls/,
      end: /\(too-many-turns\) more than 4 calls\nThe agents did not come/,
    },
  },
  'a temperature of 0': {
    solver: { sampling: { temperature: 0, maxTokens: 1 } },
    said: { 'nothing-learnt': /A temperature above 0/ },
  },
  'one candidate for each token': {
    slow: true,
    solver: { sampling: { topK: 1, maxTokens: 1 } },
    said: { 'nothing-learnt': /A topK above 1/ },
  },
  'a nucleus of one token': {
    slow: true,
    solver: { sampling: { topP: 0.01, maxTokens: 1 } },
    said: { 'nothing-learnt': /A larger topP/ },
  },
  'rewards for invalid outputs': {
    training: long,
    solver: { parse: oneOf('a', 'b', 'c') },
    reward: (_, { one }) => Number(one === undefined),
    said: { 'rewarded-invalid': /of the turns are invalid but have a positive advantage/ },
  },
  'a weight of a part that no reward has': {
    reward: (right, { one }) => ({ correct: Number(one === right) }),
    training: { partWeights: { corect: 2 } },
    said: { 'parts.missing': /no episode's reward has a part of this name/ },
  },
  'code of the team that often throws': {
    play: async ({ solver }, question, chance) => {
      const { value: one } = await solver(question);
      if (chance < 0.5) throw new Error('the database is down');
      return { one };
    },
    said: {
      'evaluation.failures': /the database is down/,
      'episodes.failing': /\(error\) the database is down/,
      end: /\(error\) the database is down/,
    },
  },
  'a tool that always fails': {
    ...withTool(1),
    said: { 'nothing-learnt': /all results of the tools that 'solver' calls are errors\. Mend the tools/ },
  },
  'a tool that often fails, and a low learning rate': {
    ...withTool(0.6),
    slow: true,
    training: { ...long, groupSize: 64 },
    policy: { optimizer: { type: 'adamw', learningRate: 1e-6 } },
    said: { unmoved: /6\d % of the results of its tools are errors\. Mend the tools first/ },
  },
  'no fault, a tool that fails now and then': { ...withTool(0.1), training: long, said: {}, slow: true },
  'no fault, stale samples': { ...lottery, training: long, rollout: { staleness: 4 }, said: {}, slow: true },
  'stale samples': {
    slow: true,
    training: long,
    rollout: { staleness: 4 },
    policy: { optimizer: { type: 'adamw', learningRate: 1 } },
    said: { 'nothing-learnt': /are 4 updates old\. A lower rollout\.staleness|all of them succeed/ },
  },
  'a judge that is down': {
    reward: () => {
      throw new Error('the judge is down');
    },
    said: {
      'evaluation.failures': /the judge is down/,
      end: /\(reward\) the judge is down\n +at reward .*planted-causes\.test\.ts:\d+/,
    },
  },
};

// Cases at once take each other's time: on a busy machine one takes more than a minute.
describe('a run with a planted cause says the cause first, and nothing else', { timeout: 300_000 }, () => {
  const daily = Object.entries(cases).filter(([, { slow }]) => slow === undefined);
  it.concurrent.each(daily)('%s', (name, planted) => check(name, planted));
  const slow = Object.entries(cases).filter(([, { slow }]) => slow);
  it.concurrent.each(slow)('%s', { tags: 'verify' }, (name, planted) => check(name, planted));

  async function check(name: string, planted: Planted): Promise<void> {
    const { said, success } = await saidBy(planted);
    expect([...new Set(said.map(({ code }) => code))], JSON.stringify(said, null, 1)).toEqual(
      Object.keys(planted.said),
    );
    for (const { code, message } of said) expect(message, code).toMatch(planted.said[code] as RegExp);
    if (name.startsWith('no fault')) expect(success[1]).toBeGreaterThan(success[0] + 0.1);
  }
});
