import { tinyDecoder } from '@drmas/engine/model';
import { describe, expect, it } from 'vitest';
import { choiceRecipe, game, learnSteps } from '../../../../test/support/choice-run.js';
import { tinySizes } from '../../../runs/testing/train-tiny.js';
import type { RecipeInput } from '../../recipe/define.js';
import { UpdateCounts } from './update-counts.js';

describe('the rise of a learning rate', () => {
  it('has its full length for an agent that is called late and now and then', async () => {
    const { play: _, ...rest } = game({ reward: (rounds) => rounds.length });
    let episodes = 0;
    const late = {
      ...rest,
      play: async ({ agents }: { agents: Record<string, (text: string) => Promise<unknown>> }) => {
        const isCalled = Math.floor(episodes++ / 4) % 3 === 2; // in the steps 3, 6, 9 and 12
        await agents.first?.('show');
        if (isCalled) await agents.second?.('show');
        return { rounds: [], chance: 0 };
      },
    };
    const recipe = choiceRecipe(
      { team: late as never, training: { steps: 12, tasksPerStep: 1, groupSize: 4 } } as Partial<RecipeInput>,
      ['policies.first.warmupSteps=5', 'policies.second.warmupSteps=3', 'policies.second.optimizer.learningRate=6'],
    );
    const steps = await learnSteps(recipe);
    const rates = (policy: string) => steps.flatMap(({ event }) => event.policies[policy]?.learningRate ?? []);
    expect(rates('second')).toEqual([2, 4, 6, 6]);
    expect(rates('first').slice(0, 6)).toEqual([0.1, 0.2, 0.3, 0.4, 0.5, 0.5].map((rate) => expect.closeTo(rate, 12)));
  });
});

it('a policy waits for the updates of its critic, also if its agent is called late', async () => {
  const model = tinyDecoder({ ...tinySizes, context: 64, tokenizer: { type: 'bytes' } });
  const { play: _, ...rest } = game({ reward: (rounds) => rounds.length });
  let episodes = 0;
  const late = {
    ...rest,
    play: async ({ agents }: { agents: Record<string, (text: string) => Promise<unknown>> }) => {
      const isCalled = episodes++ >= 2 * 2; // from step 3 on
      await agents.first?.('show');
      if (isCalled) await agents.second?.('show');
      return { rounds: [], chance: 0 };
    },
  };
  const steps = await learnSteps(
    choiceRecipe(
      {
        team: late as never,
        advantage: { type: 'gae' },
        policies: { first: { model }, second: { model } },
        training: { steps: 5, tasksPerStep: 1, groupSize: 2 },
      } as Partial<RecipeInput>,
      ['policies.first.critic.aheadSteps=2', 'policies.second.critic.aheadSteps=2'],
    ),
  );
  const learns = (policy: string) => steps.map(({ event }) => (event.policies[policy]?.learningRate ?? 0) > 0);
  expect(learns('first')).toEqual([false, false, true, true, true]);
  expect(learns('second')).toEqual([false, false, false, false, true]);
  const measured = (policy: string) => steps.map(({ event }) => event.policies[policy]?.critic !== undefined);
  expect(measured('first')).toEqual([true, true, true, true, true]);
  expect(measured('second')).toEqual([false, false, true, true, true]);
});

describe('the counts of updates', () => {
  it('go on from a checkpoint', () => {
    const counts = new UpdateCounts();
    counts.before(1).set('solver', 4);
    const resumed = new UpdateCounts(counts.state).before(7);
    expect([resumed.of('solver', 4), resumed.of('fixer', 4)]).toEqual([4, 0]);
  });

  it('of a checkpoint of an earlier version are those of a model that was updated in each step', () => {
    const counts = new UpdateCounts();
    expect(counts.before(11).of('solver', 4)).toBe(40);
    counts.before(11).set('solver', 44);
    expect([counts.before(12).of('solver', 4), counts.before(12).of('fixer', 4)]).toEqual([44, 40]);
  });
});
