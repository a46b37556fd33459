/**
 * Dr. MAS reinforcement learning of a team, as the method's sentences: take tasks, play G episodes of each, score them,
 * compare them, update each policy on its own samples, record what happened; now and then evaluate and checkpoint.
 *
 * Feng, Zheng, He, Zhang, An: "Dr. MAS: Stable Reinforcement Learning for Multi-Agent LLM Systems", arXiv 2602.08847.
 */
import { TrainingError } from '../core/errors.js';
import { checkpointDue, saveCheckpoint } from './checkpoint.js';
import { evaluatePolicies, evaluationDue } from './evaluation/evaluate-policies.js';
import type { Session } from './session.js';
import { measureInflation } from './stability/measured-inflation.js';
import { compare } from './step/advantages.js';
import { playStep } from './step/rollout-step.js';
import { failedEpisodes, gapWarnings, stepEvent } from './step/step-event.js';
import { appraise } from './step/turn-scores.js';
import { updatePolicies } from './update/update-policies.js';

/**
 * Trains from the session's position to the recipe's last step. Interrupted by the session's signal it stops between two
 * updates, with the state of the last complete step.
 * @throws TrainingError when it cannot go on; the reason of the signal when interrupted
 */
export async function trainTeam(session: Session): Promise<void> {
  const { recipe, run, clock, signal } = session;
  const { steps, failedEpisodes: rule, keepEpisodes, logprobGap } = recipe.training;

  for (;;) {
    if (evaluationDue(session)) await evaluatePolicies(session);
    if (checkpointDue(session)) await saveCheckpoint(session);
    if (session.step >= steps) return;
    const step = session.step + 1;
    const started = clock.seconds();

    const played = await playStep(session, step);
    const rolledOut = clock.seconds();

    const appraisal = await appraise(session, played);
    const comparison = compare(played.kept, recipe.advantage, appraisal.extras, recipe.agents);
    const measured = await measureInflation(session, step, comparison);
    const compared = clock.seconds();

    const updates = await updatePolicies(session, step, comparison, appraisal);
    const updated = clock.seconds();
    session.step = step;

    for (const event of failedEpisodes(played.all, step, rule)) run.emit(event);
    const seconds = { rollout: rolledOut - started, advantage: compared - rolledOut, update: updated - compared };
    const recorded = stepEvent(step, played, comparison, measured, updates, seconds);
    run.emit(recorded);
    const { events, fatal } = session.watch.judge(recorded, comparison, updates);
    for (const event of [...events, ...gapWarnings(step, updates, logprobGap)]) run.emit(event);
    if (keepEpisodes) {
      const episodes = played.all.flatMap((group) => group.episodes); // those that were left out too, without advantages
      const advantages = episodes.map((episode) => comparison.advantages.get(episode) ?? []);
      await run.writeStepEpisodes(step, episodes, advantages);
    }

    if (fatal !== undefined) throw new TrainingError(fatal);
    signal.throwIfAborted();
  }
}
