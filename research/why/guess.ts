/**
 * A first guess of the episodes of a step that taught an answer, without leaving out any: to first order, learning from
 * a turn changes the log-prob of the answer by the inner product of their gradients, times the turn's advantage. The
 * products of all turns at once come from learning the answer itself, since this changes the log-prob of each turn by
 * the same product (the influence of TracIn: Pruthi et al. 2020, arXiv 2002.08484, at one checkpoint). The policy's own
 * optimiser takes the step, so that the product is in its metric; a step towards the answer minus a step away from it,
 * so that its momentum cancels out.
 */
import type { Episode } from '@drmas/engine/nouns';
import {
  type Learner,
  type Learnt,
  type PolicyUpdate,
  scoreTurns,
  type TrainingRun,
  type TurnChain,
  trainingSample,
} from '../../src/method/index.js';
import type { PolicyAnswers } from './answers.js';

/**
 * The guessed effect of each episode on the log-prob of the answers. Only their order and their ratios mean something.
 * @param restore Puts the models back into the state before the step
 */
export async function guessedEffects(
  { learners }: Pick<TrainingRun, 'learners'>,
  { turns: learnt, advantages, updates }: Learnt,
  answers: readonly PolicyAnswers[],
  restore: () => Promise<unknown>,
): Promise<Map<Episode, number>> {
  const effects = new Map<Episode, number>();
  for (const { policy, chains } of answers) {
    const learner = learners.find(({ name }) => name === policy);
    const own = learnt.find(({ learner: { name } }) => name === policy)?.chains ?? [];
    const update = updates[policy];
    if (learner === undefined || update === undefined || own.length === 0) continue;
    const scoresAfter = async (towards: 1 | -1) => {
      await restore();
      await learnAnswers(learner, chains, update, towards);
      return scoreTurns(own, (samples) => learner.handle.logprobs(samples));
    };
    const [towards, away] = [await scoresAfter(1), await scoresAfter(-1)];
    for (const { turn, episode, advantage } of advantages.turns) {
      const [near, far] = [towards.get(turn), away.get(turn)];
      if (near === undefined || far === undefined) continue;
      const weight = (t: number) => (typeof advantage === 'number' ? advantage : (advantage[t] as number));
      const effect = near.reduce((sum, value, t) => sum + weight(t) * (value - (far[t] as number)), 0);
      effects.set(episode, (effects.get(episode) ?? 0) + effect);
    }
  }
  return effects;
}

/** Makes one step of the policy's optimiser with the gradient of the answers, as long as the gradient of the update. */
async function learnAnswers(
  { handle, settings: { optimizer, agentAdapters } }: Learner,
  chains: readonly TurnChain[],
  { gradientNorm: wanted = 1, learningRate }: PolicyUpdate,
  towards: 1 | -1,
): Promise<void> {
  const samples = chains.map((chain) => trainingSample(chain.map((turn) => ({ turn, advantage: 0 }))));
  const tokens = chains.flat().reduce((sum, { response }) => sum + response.length, 0);
  const demonstrate = (normalizer: number) =>
    handle.forwardBackward(samples, { loss: { type: 'demonstrations' }, normalizer });
  const { gradientNorm = wanted } = await demonstrate(tokens);
  await handle.discardGradient();
  if (!(gradientNorm > 0) || !(wanted > 0)) return;
  await demonstrate((towards * tokens * gradientNorm) / wanted);
  await handle.optimStep({
    optimizer: { ...optimizer, learningRate },
    clipNorm: 0,
    ...(agentAdapters === undefined ? {} : { partRates: { trunk: agentAdapters.trunkRate, adapters: 1 } }),
  });
}
