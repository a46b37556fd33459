/**
 * Dr. MAS reinforcement learning of a team, as the method's sentences: play G episodes of each of a step's tasks; score
 * the turns under the references and the critics, estimate the advantages, and update each policy on the turns of its
 * agents; record the results; sometimes evaluate and write a checkpoint.
 *
 * Feng, Zheng, He, Zhang, An: "Dr. MAS: Stable Reinforcement Learning for Multi-Agent LLM Systems", arXiv 2602.08847.
 */
import { checkpointDue, saveCheckpoint } from './checkpoint.js';
import { evaluatePolicies, evaluationDue } from './evaluation/evaluate-policies.js';
import type { RunLog, TrainingRun } from './run/run-state.js';
import type { Progress } from './state/progress.js';
import { endsAfter } from './state/stop-rules.js';
import { learnStep } from './step/learn-step.js';
import { positionAfter } from './step/play-step.js';
import { advance, recordStep, refuseCommonFailure } from './step/record-step.js';
import { RolloutsAhead } from './step/rollouts-ahead.js';

/** The longest that the first calls of episodes may have to wait, about. */
const BRIEF_SECONDS = 1;

/**
 * Trains from the run's last complete step to the recipe's last step, or until a rule of the recipe ends the run. If
 * the host's signal interrupts it, it stops while episodes are played, or after a complete step: it makes all updates
 * of a step or none.
 * @throws TrainingError if it cannot continue; the reason of the signal if interrupted
 */
export async function trainTeam(run: TrainingRun, progress: Progress, log: RunLog): Promise<void> {
  const { training } = run;
  await using rollouts = new RolloutsAhead(run);
  progress.stops.start(run.host.clock);
  /** Whether learning from the last step was brief. While it lasts, code of a team that has begun has to wait. */
  let isBrief = false;

  for (;;) {
    if (evaluationDue(run, progress)) await evaluatePolicies(run, progress, log);
    if (checkpointDue(training, progress)) await saveCheckpoint(run, progress, log);
    if (endsAfter(training, progress)) return;

    const played = await rollouts.next(progress); // playStep, begun ahead if the recipe allows it
    await refuseCommonFailure(run, progress, log, played);
    const after = positionAfter(run, progress, played);
    const learning = learnStep(run, progress, played);
    if (isBrief && goesOnAtOnce(run, { ...progress, ...after })) rollouts.beginNext(after);
    const learnt = await learning;
    isBrief = learnt.seconds.advantage + learnt.seconds.update < BRIEF_SECONDS;
    advance(progress, after, learnt);
    await rollouts.answerNext(after);
    await recordStep(run, progress, log, played, learnt);
    run.host.signal.throwIfAborted();
  }
}

/** Whether the next step follows at once: no evaluation, no checkpoint, and no rule that may end the run. */
const goesOnAtOnce = (run: TrainingRun, after: Progress): boolean =>
  run.training.stopWhen === undefined && !evaluationDue(run, after) && !checkpointDue(run.training, after);
