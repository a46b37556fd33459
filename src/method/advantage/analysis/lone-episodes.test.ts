import { RandomStream } from '@drmas/engine/math';
import type { TurnRecord } from '@drmas/engine/nouns';
import { expect, it } from 'vitest';
import { sharedVariants, variants } from '../../../../test/support/estimator-variants.js';
import { standard } from '../../../runs/composition/standard.js';
import { openEstimator } from '../estimators/index.js';
import { TurnBatch } from '../turn-batch.js';
import { loneEpisodes } from './lone-episodes.js';

const TRIES = 4;
const agents = ['solver', 'critic'];

/** Four episodes of four turns, of four tasks, with random rewards. */
function randomTurns(random: RandomStream): TurnRecord[] {
  const outcomes = Array.from({ length: 4 }, () => random.uniform());
  return outcomes.flatMap((outcome, episode) =>
    Array.from({ length: 4 }, (_, turn) => {
      const own = random.uniform();
      const place = { turn, envStep: turn, chain: turn, observation: `${episode} ${turn}`, length: 1, values: [0] };
      const rewards = { reward: outcome + own, outcome, stepReward: own, agentStepReward: own, baseline: 0 };
      const agent = agents[turn % 2] as string;
      return { task: `${episode}`, episode: `${episode}`, agent, ...place, ...rewards, parts: { correct: outcome } };
    }),
  );
}

it('says of each estimator what random rewards show', () => {
  const all = [...variants, ...sharedVariants].map((variant) => {
    const estimator = openEstimator(variant, standard.estimators);
    const advantagesOf = (turns: readonly TurnRecord[]) => Array.from(estimator.compute(new TurnBatch(turns))).flat();
    const tried = Array.from({ length: TRIES }, (_, n) => {
      const turns = randomTurns(new RandomStream('lone episodes', n));
      const paired = turns.map((turn) => ({ ...turn, task: `${Number(turn.task) % 2}` }));
      return { alone: advantagesOf(turns), together: advantagesOf(paired) };
    });
    const compares = tried.some(({ alone, together }) => alone.some((each, i) => each !== together[i]));
    const silent = tried.every(({ alone }) => alone.every((each) => Math.abs(each) < 1e-9));
    return { variant, said: loneEpisodes(estimator, agents), shown: { compares, silent } };
  });
  expect(all.map(({ variant, said }) => ({ variant, ...said }))).toEqual(
    all.map(({ variant, shown }) => ({ variant, ...shown })),
  );
});
