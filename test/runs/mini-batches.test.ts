/** The metrics of a step do not depend on its mini-batches: copies of turns and mini-batches count by their tokens. */

import type { AgentStep } from '@drmas/engine/events';
import { lossKind, lossNamed } from '@drmas/engine/loss';
import { choiceTable, tinyDecoder } from '@drmas/engine/model';
import { describe, expect, it } from 'vitest';
import { labLosses } from '../../src/lab/index.js';
import type { Played } from '../../src/method/training/play/played.js';
import { standard } from '../../src/runs/composition/standard.js';
import { tinySizes } from '../../src/runs/testing/train-tiny.js';
import { choiceRecipe, game, learnSteps } from '../support/choice-run.js';
import { tinyRecipe } from '../support/tiny-run.js';

/** Fields of an agent's or a policy's event that mini-batches may change, each with the reason. */
const ofMiniBatches: Readonly<Record<string, string>> = {
  gradientNorm: 'the mean, or the largest, of the norms of the optimiser steps',
  agreement: 'the mean over the optimiser steps',
  logprobGap: 'measured before the first update, over the first mini-batch',
  tokens: 'identical turns of one mini-batch go through the model once',
};

/** The log-probs of each turn as of another policy, so that ratios differ from 1 and some are clipped. */
function offPolicy({ all }: Played): void {
  const turns = all.flatMap(({ episodes }) => episodes).flatMap((episode) => episode.turns);
  for (const [i, { logprobs }] of turns.entries())
    for (const [t, logprob] of logprobs.entries())
      (logprobs as Float32Array | number[])[t] = logprob - 0.1 * ((7 * i + 3 * t) % 5);
}

const policy = {
  model: choiceTable({ choices: ['a', 'b', 'c', 'x'] }),
  optimizer: { type: 'sgd', learningRate: 1e-12 },
  epochs: 2,
} as const;

/** The numbers of a step by name, without those that mini-batches may change. */
async function metricsOf(miniBatches: number, overrides: readonly string[]): Promise<Record<string, number>> {
  const two = { first: policy, second: policy };
  const recipe = choiceRecipe(
    {
      policies: overrides.includes('assign.second=first') ? { first: policy } : two,
      team: game(),
      training: { steps: 1, tasksPerStep: 4, groupSize: 8 },
    },
    [...overrides, ...Object.keys(two).map((name) => `policies.${name}.miniBatches=${miniBatches}`)].filter(
      (override) => !overrides.includes('assign.second=first') || !override.startsWith('policies.second'),
    ),
  );
  const [step] = await learnSteps(recipe, offPolicy);
  const { agents = {}, policies = {} } = step?.event ?? {};
  const flat = (of: object, path: string): [string, number][] =>
    Object.entries(of).flatMap(([name, value]) => {
      if (name in ofMiniBatches) return [];
      if (typeof value === 'object') return flat(value, `${path}.${name}`);
      return typeof value === 'number' ? [[`${path}.${name}`, value]] : [];
    });
  return Object.fromEntries([...flat(agents, 'agents'), ...flat(policies, 'policies')]);
}

const variants = [
  { name: 'two policies', overrides: [] },
  { name: 'one policy', overrides: ['assign.first=first', 'assign.second=first'] },
  { name: 'an entropy bonus', overrides: ['policies.first.entropyCoefficient=0.1'] },
  { name: 'a KL in the loss', overrides: ['policies.first.kl.in=loss', 'policies.first.kl.coefficient=0.5'] },
  { name: 'importance correction', overrides: ['loss.importanceCorrection.cap=1.1'] },
];
const losses = standard.losses.map(({ type, schema, weighsDemonstrations }) => ({
  type,
  corrects: 'importanceCorrection' in schema.shape,
  prepares: lossKind(lossNamed(schema.parse({ type }) as { type: string }, labLosses)).prepares,
  chosen: [`loss.type=${type}`, ...(weighsDemonstrations === true ? ['advantage.type=rejection'] : [])],
}));

type Loss = (typeof losses)[number];
type Variant = (typeof variants)[number];

describe('each metric of a step is the same for 1, 4 and 16 mini-batches while the policy stands still', () => {
  // The daily tests show each loss with one variant, and the first loss with all.
  it.each(losses)('$type', (loss) => check(loss, [1, 16], loss === losses[0] ? variants : [variantOf(loss)]));
  it.each(losses)('$type, in all variants', { tags: 'verify' }, (loss) => check(loss, [1, 4, 16], variants));

  /** The variant that differs most from a plain run: other losses do not correct. */
  const variantOf = ({ corrects }: Loss) => (corrects ? variants[4] : variants[0]) as Variant;

  async function check(
    { chosen, corrects, prepares }: Loss,
    counts: readonly number[],
    tried: readonly Variant[],
  ): Promise<void> {
    for (const { name, overrides } of tried) {
      if (name === 'importance correction' && !corrects) continue;
      const [one, ...others] = await Promise.all(
        counts.map((miniBatches) => metricsOf(miniBatches, [...chosen, ...overrides])),
      );
      const expected = Object.entries(one as Record<string, number>);
      const moved = name === 'importance correction' ? 'importanceBeyond' : 'kl'; // where the distance shows
      expect(Math.abs(one?.[`agents.first.${moved}`] ?? 0), name).toBeGreaterThan(0.1);
      for (const other of others) {
        expect(Object.keys(other), name).toEqual(expected.map(([path]) => path));
        // The constants of a loss that prepares are of its mini-batch.
        for (const [path, value] of expected)
          if (!(prepares && path.endsWith('.loss'))) expect(other[path], `${name}: ${path}`).toBeCloseTo(value, 6);
      }
    }
  }
});

it('a step that measures no token of an agent has no metric of it, and no 0', async () => {
  const measured: readonly (keyof AgentStep)[] = [
    'entropy',
    'clipFraction',
    'kl',
    'maxRatioDeviation',
    'logprobGap',
    'referenceKl',
  ];
  const constant = choiceRecipe({
    team: game({ reward: () => 1 }),
    training: { steps: 1, tasksPerStep: 2, groupSize: 4 },
  });
  for (const { event } of await learnSteps(constant))
    for (const agent of Object.values(event.agents)) {
      for (const name of measured) expect(agent).not.toHaveProperty(name);
      expect(agent).toMatchObject({ loss: 0, gradientNorm: 0 });
    }
});

it('nor has a critic a share of the variance of returns that do not vary', async () => {
  const model = tinyDecoder({ ...tinySizes, context: 64, tokenizer: { type: 'bytes' } });
  const explainedIf = async (reward: (chance: number) => number) => {
    const [step] = await learnSteps(
      choiceRecipe({
        team: game({ reward: (_, chance) => reward(chance) }),
        advantage: { type: 'gae' },
        policies: { first: { model }, second: { model } },
        training: { steps: 1, tasksPerStep: 1, groupSize: 4 },
      }),
    );
    return step?.event.policies.first?.critic ?? {};
  };
  expect(await explainedIf(() => 0)).not.toHaveProperty('explainedVariance');
  expect(await explainedIf((chance) => chance)).toHaveProperty('explainedVariance');
});

it('the loss and the clip fraction of a critic too', async () => {
  const criticOf = async (miniBatches: number) => {
    const recipe = tinyRecipe({ advantage: { type: 'gae' }, training: { steps: 1, tasksPerStep: 4, groupSize: 4 } }, [
      `policies.solver.critic.miniBatches=${miniBatches}`,
      'policies.solver.critic.optimizer.learningRate=1e-12',
    ]);
    const [step] = await learnSteps(recipe);
    return step?.event.policies.solver?.critic;
  };
  const one = await criticOf(1);
  expect(one?.loss).toBeGreaterThan(1e-3);
  for (const miniBatches of [4, 16]) {
    const other = await criticOf(miniBatches);
    expect(other?.loss).toBeCloseTo(one?.loss ?? Number.NaN, 6);
    expect(other?.clipFraction).toBeCloseTo(one?.clipFraction ?? Number.NaN, 6);
  }
});
