/** Inflation as the gradients of a step show it, beside what the lemma predicts. */
import { openEstimator } from '../../advantage/estimators/index.js';
import { sharedScores } from '../../advantage/inflation.js';
import { TurnBatch } from '../../advantage/turn-batch.js';
import type { Turn } from '../../core/episode.js';
import { BackendError } from '../../core/errors.js';
import { permutation } from '../../core/random.js';
import { type OpenRun, policyNamed } from '../run-state.js';
import type { StepAdvantages } from '../step/advantages.js';
import { trainingSample } from '../update/training-samples.js';

/** The most turns of an agent that are measured: each costs a pass of its own. */
const MOST_TURNS = 32;

/**
 * For each agent the second moment of its score-weighted gradient under the statistics that all agents share, over that
 * under statistics of its own that know nothing of its gradients: Σ A² |z|² / Σ |z|² (Lemma 4.2), with z the gradient
 * of the turn's log-prob and A its score normalised by the shared statistics, over turns of groups that have a spread.
 * What it exceeds the prediction by is the covariance of A² and |z|², over the mean of |z|². Empty in steps that the
 * recipe does not ask about, an agent without such a turn is missing. Leaves weights, gradients and the optimiser as
 * they were.
 */
export async function measureInflation(
  run: OpenRun,
  step: number,
  { turns, records }: StepAdvantages,
): Promise<Readonly<Record<string, number>>> {
  const { recipe } = run;
  const every = recipe.training.measureInflation;
  if (every === 0 || (step - 1) % every !== 0) return {};
  const { scores } = sharedScores(new TurnBatch(records), openEstimator(recipe.advantage));
  const judged = turns
    .map(({ turn }, i) => ({ turn, score: scores[i] as number }))
    .filter(({ turn, score }) => !Number.isNaN(score) && Object.hasOwn(recipe.policies, turn.policy));
  const agents = [...new Set(judged.map(({ turn }) => turn.agent))];
  const measured = await Promise.all(
    agents.map(async (agent) => {
      const all = judged.filter(({ turn }) => turn.agent === agent);
      const order = permutation(all.length, 'measured inflation', recipe.seed, step, agent);
      const some = Array.from(order.subarray(0, MOST_TURNS), (i) => all[i] as (typeof all)[number]);
      const norms = await Promise.all(some.map(({ turn }) => gradientNorm(run, turn)));
      const below = norms.reduce((sum, norm) => sum + norm ** 2, 0);
      const above = some.reduce((sum, { score }, i) => sum + score ** 2 * (norms[i] as number) ** 2, 0);
      return below > 0 ? [[agent, above / below] as const] : [];
    }),
  );
  for (const policy of Object.keys(recipe.policies)) await policyNamed(run, policy).discardGradient();
  return Object.fromEntries(measured.flat());
}

/** |z|: the norm of the gradient of the turn's log-prob. */
async function gradientNorm(run: OpenRun, turn: Turn): Promise<number> {
  const options = { loss: { type: 'demonstrations' }, normalizer: 1 } as const;
  const { gradientNorm: norm } = await policyNamed(run, turn.policy).forwardBackward(
    [trainingSample([{ turn, advantage: 0 }])],
    options,
  );
  if (norm === undefined) throw new BackendError('the backend tells no norm of the gradient of a single turn');
  return norm;
}
