/** Small runs whose warm start has planted demonstrations: what drmas says names them first, and no other cause. */

import { tinyDecoder } from '@drmas/engine/model';
import { user } from '@drmas/engine/nouns';
import { describe, expect, it } from 'vitest';
import { z } from 'zod';
import type { RecipeInput } from '../../src/method/recipe/define.js';
import { agent } from '../../src/teams/team/agent.js';
import { oneOf } from '../../src/teams/team/parsers.js';
import { defineTeam } from '../../src/teams/team/team.js';
import { saidIn } from '../support/said-in-run.js';
import { temporaryRoot } from '../support/tiny-run.js';

const root = temporaryRoot();
const LETTERS = ['a', 'b', 'c', 'd'] as const;
type Letter = (typeof LETTERS)[number];
const ask = (letter: string) => letter.toUpperCase();
const other = (letter: Letter): Letter => LETTERS[(LETTERS.indexOf(letter) + 1) % LETTERS.length] ?? 'a';

interface Planted {
  /** The demonstrated answers to the question about a letter. */
  readonly shown: (letter: Letter) => readonly string[];
  /** A checker reads the solver's answer, and repeats it in its demonstrations. */
  readonly two?: true;
  /** The checker's demonstrated answer, instead of the letter that it reads. */
  readonly checked?: (letter: Letter) => string;
  readonly reward?: (right: boolean, chance: number) => number;
  readonly training?: object;
  /** A run whose kind another case shows: the daily tests leave it out. */
  readonly slow?: true;
  readonly said: Readonly<Record<string, RegExp>>;
}

function recipeOf({ shown, two, checked = String, reward = Number, training }: Planted): RecipeInput {
  const player = () => agent({ parse: oneOf(...LETTERS), sampling: { maxTokens: 2 } });
  const traces = LETTERS.flatMap((letter) => [
    ...shown(letter).map((response) => ({ agent: 'solver', messages: [user(ask(letter))], response })),
    ...(two ? [{ agent: 'checker', messages: [user(`0${ask(letter)}`)], response: checked(letter) }] : []),
  ]);
  return {
    team: defineTeam({
      name: 'letters',
      task: z.object({ right: z.enum(LETTERS) }),
      agents: { solver: player(), ...(two && { checker: player() }) },
      async play({ task: { right }, agents, random }) {
        const chance = random.uniform();
        const { solver, checker } = agents as Record<string, (text: string) => Promise<{ readonly text: string }>>;
        const one = (await solver?.(ask(right)))?.text ?? '';
        const answer = checker === undefined ? one : (await checker(`0${ask(one)}`)).text;
        return { answer, chance };
      },
      reward: ({ outcome: { answer, chance }, task: { right } }) => reward(answer === right, chance),
    }),
    tasks: {
      name: 'letters',
      load: async (split: string) => ({
        name: 'letters',
        size: LETTERS.length,
        at: (index: number) => ({
          id: `${split === 'train' ? '' : split}${index}`,
          data: { right: LETTERS[index] as Letter },
        }),
      }),
      trace: (random: { pick: <T>(values: readonly [T, ...T[]]) => T }) => random.pick(traces as never),
    },
    model: tinyDecoder({
      ...{ width: 16, layers: 1, heads: 1, feedForward: 32, context: 16 },
      tokenizer: {
        type: 'symbols',
        symbols: [...LETTERS, ...LETTERS.map(ask), '0', '<ask>', '<end>'],
        ...{ stop: '<end>', endOfUser: '<ask>', endOfAssistant: '<end>' },
      },
    } as never),
    warmStart: { steps: 200, batch: 16, learningRate: 0.02 },
    training: { steps: 6, tasksPerStep: 4, groupSize: 8, checkpointEvery: 30, rewardRetries: 0, ...training },
    evaluation: { every: 30, tasks: 4, samples: 2 },
  } as unknown as RecipeInput;
}

const doNotSucceed =
  /^step 1: demonstrations of 'solver' do not succeed: of \d+ turns that repeat one, \d+ .* such as "[a-d]" to "[A-D]"\. Compare/;
const contradict =
  /^step 1: demonstrations of 'solver' contradict each other: the answer "(.)" to "(?:\1|[A-D])" succeeds, and "[a-d]" does not/;
const taught =
  /the warm start has taught 'solver' nearly the same text for a prompt, and it does not succeed in [24] of 4 groups\. Compare/;

const cases: Readonly<Record<string, Planted>> = {
  'right answers': { shown: (letter) => [letter], said: { 'nothing-learnt': /all of them succeed/ } },
  'right answers, written in two ways': {
    slow: true,
    shown: (letter) => [letter, `${letter}${letter}`],
    reward: () => 1,
    said: { 'nothing-learnt': /all of them succeed/ },
  },
  'several answers, and a reward that does not depend on them': {
    slow: true,
    shown: (letter) => [letter, other(letter)],
    reward: () => 0.5,
    said: { 'nothing-learnt': /all 32 episodes earn 0\.50, whatever the agents write/ },
  },
  'several answers, and a reward by chance': {
    shown: (letter) => [letter, other(letter)],
    reward: (_, chance) => Number(chance < 0.5),
    said: {},
  },
  'right answers, and a second agent that is wrong': {
    two: true,
    shown: (letter) => [letter],
    checked: other,
    said: {
      demonstrations: / do not succeed: .*Other turns of these episodes may be at fault/,
      'nothing-learnt': /the warm start has taught 'checker', 'solver'/,
    },
  },
  'wrong answers': {
    shown: (letter) => [other(letter)],
    said: { demonstrations: doNotSucceed, 'nothing-learnt': taught },
  },
  'wrong answers to half of the questions': {
    slow: true,
    shown: (letter) => [letter < 'c' ? letter : other(letter)],
    said: { demonstrations: doNotSucceed, 'nothing-learnt': taught },
  },
  'answers that contradict each other': {
    shown: (letter) => [letter, other(letter)],
    said: { demonstrations: contradict },
  },
  'answers that contradict each other, to half of the questions': {
    slow: true,
    shown: (letter) => (letter < 'c' ? [letter] : [letter, other(letter)]),
    said: { demonstrations: contradict },
  },
  'answers that contradict each other, by the first of two agents': {
    slow: true,
    two: true,
    shown: (letter) => [letter, other(letter)],
    said: { demonstrations: contradict },
  },
};

describe('a run with planted demonstrations says so first, and nothing else', () => {
  const daily = Object.entries(cases).filter(([, { slow }]) => slow === undefined);
  it.concurrent.each(daily)('%s', (_, planted) => check(planted));
  const slow = Object.entries(cases).filter(([, { slow }]) => slow);
  it.concurrent.each(slow)('%s', { tags: 'verify' }, (_, planted) => check(planted));

  async function check(planted: Planted): Promise<void> {
    const { said } = await saidIn(root, recipeOf(planted));
    const codes = [...new Set(said.map(({ code }) => code))];
    expect(codes, JSON.stringify(said, null, 1)).toEqual(Object.keys(planted.said));
    for (const { code, message } of said) expect(message, code).toMatch(planted.said[code] as RegExp);
  }
});
