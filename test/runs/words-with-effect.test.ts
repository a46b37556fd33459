/** Each word, switch and member of a union of a recipe changes what is learnt, is refused, or has its reason here. */

import { tinyDecoder } from '@drmas/engine/model';
import { expect, it } from 'vitest';
import { z } from 'zod';
import type { RecipeInput } from '../../src/method/recipe/define.js';
import { tinySizes } from '../../src/runs/testing/train-tiny.js';
import { agent } from '../../src/teams/team/agent.js';
import { defineTeam, type Team } from '../../src/teams/team/team.js';
import { choiceRecipe, game, learnSteps, type Round, richReward } from '../support/choice-run.js';
import { type Setting, wordSettings } from '../support/recipe-settings.js';

/** Settings that cannot change what a small model learns in a few steps, each with the reason. */
const elsewhere: readonly (readonly [RegExp, string])[] = [
  [/^(warmStart|evaluation|gateway|rollout|backend|sampler)\./, 'no part of a step that learns'],
  [/\.(model|agentAdapters|backend|sampler)\./, 'other models: own-models.test.ts, lora.test.ts'],
  [/\.(device|precision)$/, 'hardware: precision.test.ts'],
  [/^policies\.first\.loss\./, 'the same schema as `loss`'],
  [/\.second\./, 'the same schema as for the first'],
  [/^agents\.first\.promptLimit\.cut$/, 'prompts of one token: trust-and-split.test.ts'],
  [
    /^training\.(keepFirst|keepBest|bestBy|keepEpisodes)$/,
    'which files are kept: checkpoint.test.ts, stop-rules.test.ts',
  ],
  [/^training\.spike\.action$/, 'steps with a spike: stability-watch.test.ts'],
  [
    /^advantage\.singleton advantage\.type=(grpo-turn|drmas-batch|magrpo)/,
    'the game has no such groups: unused-choices.test.ts',
  ],
];

/** Settings besides its own that a setting needs to have an effect. */
const needed: readonly (readonly [RegExp, ...(readonly string[])])[] = [
  [/\.critic\./, 'advantage.type=gae', 'policies.first.critic.epochs=4'],
  [/critic.*chedule\.type/, 'policies.first.critic.warmupSteps=0'],
  [/across advantage\.type=gae/, 'advantage.lambda=0.5'],
  [/critic.*nesterov/, 'policies.first.critic.optimizer.momentum=0.5'],
  [/advantage\.type=partition/, 'advantage.score=turn', 'advantage.mean=agent', 'advantage.spread=task'],
  [/advantage\.type=rejection/, 'advantage.above=0.3'],
  [/^advantage\.singleton/, 'training.groupSize=1', 'training.tasksPerStep=6'],
  [/^loss\.type/, 'policies.first.epochs=4'],
  [/aggregate loss\.type=cross-entropy/, 'advantage.type=rejection', 'advantage.above=0'],
  [/policies\.first\.optimizer\.nesterov/, 'policies.first.optimizer.momentum=0.5'],
  [/chedule\.type/, 'policies.first.warmupSteps=0'],
  [/entropySchedule/, 'policies.first.entropyCoefficient=0.5'],
  [/first\.kl\./, 'policies.first.kl.coefficient=0.3', 'policies.first.kl.kind=k1', 'policies.first.epochs=2'],
  [
    /controller\.type/,
    'policies.first.kl.controller={"type":"adaptive","target":0.001,"horizon":2}',
    'policies.first.kl.in=loss',
    'policies.first.epochs=4',
  ],
  [/importanceCorrection/, 'loss.importanceCorrection.cap=0.7'],
  [/^advantage\.unit advantage\.type=drmas$/, 'training.groupSize=6'],
];

/** Values that give one run, each with the reason. */
const alike: readonly (readonly [RegExp, readonly string[], string])[] = [
  [/^advantage\.unit/, ['turn', 'chain'], 'no turn of the game continues another: unused-choices.test.ts'],
  [/^advantage\.score/, ['turn', 'chain'], 'as above'],
  [/^advantage\.(mean|spread) advantage\.type=partition/, ['agent', 'agent-chains'], 'as above'],
  [/^loss\.aggregate/, ['chain-mean', 'seq-mean-token-mean'], 'as above: chains.test.ts'],
  [/^advantage\.type$/, ['drmas-mean', 'partition'], 'the general form of it'],
  [/^loss\.importanceCorrection\.level/, ['token', 'sequence'], 'all ratios are 1: goldens.test.ts of the losses'],
  [
    /^training\.filter\.score training\.filter\.type=equal-outcomes/,
    ['mean', 'outcome', 'outcome+penalties'],
    'no group is equal in one of them alone: filter.test.ts',
  ],
  [
    /^training\.filter\.score training\.filter\.type=variance/,
    ['outcome', 'outcome+penalties', 'success'],
    'they vary in the same group: filter.test.ts',
  ],
];

/** Players who earn for single turns too, and a team of which some episodes fail. */
const team = (between?: (chance: number) => void) =>
  game({
    ...(between && { between }),
    reward: (rounds: readonly Round[]) => {
      const { turns = [], ...rest } = richReward(rounds) as { turns?: readonly { turn: number; value: number }[] };
      return { ...rest, turns: [...turns, { turn: 0, value: rounds[0]?.first === 'a' ? 0.2 : 0 }] } as never;
    },
  });
const failing = (chance: number) => {
  if (chance < 0.4) throw new Error('on purpose');
};

/** A team that writes up to four tokens a turn, in one or two turns of each agent. */
const writers = defineTeam({
  name: 'writers',
  task: z.object({ level: z.string() }),
  agents: { first: agent({ sampling: { maxTokens: 4 } }), second: agent({ sampling: { maxTokens: 4 } }) },
  async play({ agents: { first, second }, random }) {
    const texts = [(await first('a')).text, (await second('b')).text];
    if (random.uniform() < 0.5) texts.push((await first('c')).text);
    return texts.join('');
  },
  reward: ({ outcome }) => ([...outcome].reduce((sum, c) => sum + c.charCodeAt(0), 0) % 7) / 7,
}) as unknown as Team;
const decoder = tinyDecoder({
  ...tinySizes,
  context: 64,
  tokenizer: { type: 'symbols', symbols: ['a', 'b', 'c', '.'], stop: '.', endOfUser: 'c', endOfAssistant: '.' },
});
/** Settings whose effect shows in texts of several tokens, or that need a decoder. */
const written = /(^loss\.type|aggregate |gae|\.critic\.)/;

const all = wordSettings({ first: 'first', second: 'second' });
const nameOf = ({ path, chosen }: Setting) => [path, ...chosen].join(' ');
const tried = all.filter((setting) => !elsewhere.some(([pattern]) => pattern.test(nameOf(setting))));

/** The samples of the policies with their log-probs, by step: they show the lessons of the steps before. */
async function learntBy(name: string, overrides: readonly string[]): Promise<string> {
  const policy = { model: decoder, optimizer: { type: 'sgd', learningRate: 1 }, clipNorm: 0 };
  const policies = { first: policy, second: policy };
  const training = { steps: 4, tasksPerStep: 2, groupSize: 4 };
  const changes: object = written.test(name)
    ? { team: writers, policies, training: { ...training, steps: /gae|critic/.test(name) ? 4 : 2 } }
    : { team: team(name === 'training.failedEpisodes' ? failing : undefined), training };
  const steps = await learnSteps(choiceRecipe(changes as Partial<RecipeInput>, overrides));
  const turns = steps.flatMap(({ played }) =>
    played.all.flatMap(({ episodes }) => episodes.flatMap((one) => one.turns)),
  );
  return JSON.stringify(turns.map(({ response, logprobs }) => [response, logprobs]));
}

it('the exceptions are of settings that exist', () => {
  const names = all.map(nameOf);
  for (const [pattern] of [...elsewhere, ...needed, ...alike])
    expect(
      names.filter((name) => pattern.test(name)),
      String(pattern),
    ).not.toEqual([]);
});

it.each(tried.map((setting) => ({ name: nameOf(setting), setting })))(
  'each value of $name gives a run of its own, or is refused',
  { tags: 'verify' },
  async ({ name, setting: { path, chosen, values } }) => {
    const more = needed.flatMap(([pattern, ...overrides]) => (pattern.test(name) ? overrides : []));
    const results = new Map<string, unknown[]>();
    for (const value of values) {
      const ownNeeds = needed.flatMap(([p, ...o]) => (p.test(`${path}=${value}`) ? o : []));
      const run = learntBy(name, [...chosen, ...more, ...ownNeeds, `${path}=${value}`]);
      const result = await run.catch((error: Error) => error.message);
      results.set(result, [...(results.get(result) ?? []), value]);
    }
    const expected = alike.filter(([pattern]) => pattern.test(name)).map(([, equal]) => [...equal].sort());
    const same = [...results.values()].filter(({ length }) => length > 1).map((equal) => [...equal].sort());
    expect(expected, [...results.keys()].map((key) => key.slice(0, 200)).join('\n')).toEqual(
      expect.arrayContaining(same),
    );
  },
);
