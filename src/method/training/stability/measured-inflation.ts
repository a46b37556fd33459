/** The inflation measured from a step's gradients, to compare with the lemma's prediction. */

import { BackendError } from '@drmas/engine/errors';
import { permutation } from '@drmas/engine/math';
import type { Turn } from '@drmas/engine/nouns';
import { sharedScores } from '../../advantage/inflation.js';
import { TurnBatch } from '../../advantage/turn-batch.js';
import type { StepAdvantages } from '../advantages/advantages.js';
import type { Learner } from '../run/learner.js';
import type { TrainingRun } from '../run/run-state.js';
import { trainingSample } from '../samples/training-samples.js';

/** The most turns of an agent that are measured. Each costs a forward and a backward pass. */
const MOST_TURNS = 32;

/**
 * For each agent, the second moment of its score-weighted gradient under the statistics that all agents share, divided
 * by the second moment under its own statistics, assuming scores that are independent of the gradients: Σ A² |z|² / Σ
 * |z|² (Lemma 4.2). z is the gradient of the turn's log-prob, A is its score by the shared statistics. The sums are
 * over turns of groups with a spread. The measured minus the predicted inflation is the covariance of A² and |z|²,
 * divided by the mean of |z|². Empty in steps without a measurement. An agent without such a turn is missing. Does not
 * change weights, gradients or the optimiser.
 * @throws BackendError if the backend does not report norms
 */
export async function measureInflation(
  { seed, training, estimator, learners }: Pick<TrainingRun, 'seed' | 'training' | 'estimator' | 'learners'>,
  step: number,
  { turns, records }: StepAdvantages,
): Promise<Readonly<Record<string, number>>> {
  const every = training.measureInflation;
  if (every === 0 || (step - 1) % every !== 0) return {};
  const { scores } = sharedScores(new TurnBatch(records), estimator);
  const judged = turns
    .map(({ turn }, i) => ({ turn, score: scores[i] as number }))
    .filter(({ score }) => !Number.isNaN(score));
  const agents = [...new Set(judged.map(({ turn }) => turn.agent))];
  const measured = await Promise.all(
    agents.map(async (agent) => {
      const learner = learners.find((each) => agent in each.agents);
      if (learner === undefined) return [];
      const all = judged.filter(({ turn }) => turn.agent === agent);
      const order = permutation(all.length, 'measured inflation', seed, step, agent);
      const some = Array.from(order.subarray(0, MOST_TURNS), (i) => all[i] as (typeof all)[number]);
      const norms = await Promise.all(some.map(({ turn }) => gradientNorm(learner, turn)));
      const below = norms.reduce((sum, norm) => sum + norm ** 2, 0);
      const above = some.reduce((sum, { score }, i) => sum + score ** 2 * (norms[i] as number) ** 2, 0);
      return below > 0 ? [[agent, above / below] as const] : [];
    }),
  );
  for (const { handle } of learners) await handle.discardGradient();
  return Object.fromEntries(measured.flat());
}

/** |z|: the norm of the gradient of the turn's log-prob. */
async function gradientNorm({ handle }: Learner, turn: Turn): Promise<number> {
  const options = { loss: { type: 'demonstrations' }, normalizer: 1 } as const;
  const { gradientNorm: norm } = await handle.forwardBackward([trainingSample([{ turn, advantage: 0 }])], options);
  if (norm === undefined) throw new BackendError('the backend does not report the gradient norm of a single turn');
  return norm;
}
