/**
 * Dr. MAS reinforcement learning of a team, as the method's sentences: play G episodes of each of a step's tasks, score
 * the turns under the references and the critics, estimate the advantages, update each policy on the turns of its
 * agents, record what happened; now and then evaluate and checkpoint.
 *
 * Feng, Zheng, He, Zhang, An: "Dr. MAS: Stable Reinforcement Learning for Multi-Agent LLM Systems", arXiv 2602.08847.
 */
import { TrainingError } from '../core/errors.js';
import { checkpointDue, saveCheckpoint } from './checkpoint.js';
import { evaluatePolicies, evaluationDue } from './evaluation/evaluate-policies.js';
import { keepStep } from './kept-episodes.js';
import type { Progress, RunLog, TrainingRun } from './run-state.js';
import { estimatorHints } from './stability/estimator-hints.js';
import { measureInflation } from './stability/measured-inflation.js';
import { stepAdvantages } from './step/advantages.js';
import { commonFailure, failureText } from './step/common-failure.js';
import { predictionsAfter } from './step/curriculum.js';
import { RolloutsAhead } from './step/rollouts-ahead.js';
import { failureEvents, gapWarnings, partWarnings, stepEvent } from './step/step-event.js';
import { stepSpending } from './step/step-spending.js';
import { turnScores } from './step/turn-scores.js';
import { updatePolicies } from './update/update-policies.js';

/**
 * Trains from where the run stands to the recipe's last step. Interrupted by the host's signal it stops while episodes
 * are played or after a whole step: the updates of a step are all made or none.
 * @throws TrainingError when it cannot go on; the reason of the signal when interrupted
 */
export async function trainTeam(run: TrainingRun, progress: Progress, log: RunLog): Promise<void> {
  const { recipe, host } = run;
  const { clock, signal } = host;
  const { steps, failedEpisodes, logprobGap } = recipe.training;
  await using rollouts = new RolloutsAhead(run);

  for (;;) {
    if (evaluationDue(recipe, progress)) await evaluatePolicies(run, progress, log);
    if (checkpointDue(recipe, progress)) await saveCheckpoint(run, progress, log);
    if (progress.step >= steps) return;
    const step = progress.step + 1;
    const started = clock.seconds();

    const rollout = await rollouts.next(step, progress.predictions);
    const rolledOut = clock.seconds();
    const common = commonFailure(rollout.all);
    if (common !== undefined) {
      for (const event of failureEvents(rollout.all, step, failedEpisodes)) log.emit(event);
      await keepStep(recipe, log, step, rollout);
      throw new TrainingError(`every episode of step ${step} failed alike: ${failureText(common)}`);
    }

    const scores = await turnScores(run, progress.kl, rollout); // reference log-probs and their KL, values, baselines
    const advantages = stepAdvantages(recipe, rollout.kept, scores, progress.estimator);
    const measured = await measureInflation(run, step, advantages);
    const estimated = clock.seconds();

    const updates = await updatePolicies(run, progress, step, scores, advantages);
    const updated = clock.seconds();
    progress.step = step;
    progress.estimator = advantages.state;
    progress.predictions = predictionsAfter(progress.predictions, rollout.levels, recipe);

    for (const event of failureEvents(rollout.all, step, failedEpisodes)) log.emit(event);
    const seconds = { rollout: rolledOut - started, advantage: estimated - rolledOut, update: updated - estimated };
    const spending = stepSpending(recipe, rollout, scores.chains, updates);
    const recorded = stepEvent(step, rollout, advantages, measured, updates, spending, seconds);
    log.emit(recorded);
    const { events, fatal } = progress.watch.judge(recorded, advantages, updates);
    const silence = progress.watch.silence.judge(recorded, updates);
    const hints = [
      ...partWarnings(recipe, step, rollout),
      ...gapWarnings(step, rollout, updates, logprobGap),
      ...estimatorHints(recipe, step, advantages),
    ];
    for (const event of [...events, ...silence, ...hints]) log.emit(event);
    await keepStep(recipe, log, step, rollout, advantages, updates);

    if (fatal !== undefined) throw new TrainingError(fatal);
    signal.throwIfAborted();
  }
}
