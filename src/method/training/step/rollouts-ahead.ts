/**
 * Rollouts that begin before the updates of earlier steps, so that sampling continues while other episodes wait for
 * tools, and rollouts that begin during a short update, so that this thread works while the engine does.
 */

import { macrotask, nextMacrotask } from '@drmas/engine/host';
import type { Versions } from '../../../teams/rollout.js';
import type { Played } from '../play/played.js';
import type { TrainingRun } from '../run/run-state.js';
import { playStep, type StepPlayer, type StepPosition } from './play-step.js';

type AheadRun = StepPlayer & Pick<TrainingRun, 'staleness' | 'trained'>;

interface StartedRollout {
  /** The last complete step when the rollout began. */
  readonly after: number;
  readonly rollout: Promise<Played>;
  /** Lets the agents answer, if they wait. Settles once their waiting calls are made. */
  readonly answer: () => Promise<void>;
}

/**
 * The rollouts of a run in the order of its steps. With a staleness of S the rollout of step k begins as soon as step k
 * - 1 - S has made its updates. The weights that are published then play it to its end. So the weights of each episode
 * do not depend on timing, and one seed gives one run. The run learns from each rollout in order. It does not drop or
 * restart any, so that slow tasks count as much as fast ones. No rollout begins ahead of a checkpoint that the recipe
 * asks for, so that a run that resumes from it equals the uninterrupted run. With a staleness of 0 no agent answers
 * before the updates of the previous step; `beginNext` begins its episodes up to there.
 */
export class RolloutsAhead {
  readonly #run: AheadRun;
  readonly #staleness: number;
  readonly #begun = new Map<number, StartedRollout>();
  readonly #end = new AbortController();
  /** The position after which `beginNext` still has to begin episodes. */
  #due: StepPosition | undefined;

  constructor(run: AheadRun) {
    this.#run = run;
    this.#staleness = run.staleness;
  }

  /** Plays the step after the last complete step, and begins the later steps that may begin now. */
  async next(progress: StepPosition): Promise<Played> {
    const { clock } = this.#run.host;
    const started = clock.seconds();
    const step = progress.step + 1;
    this.#due = undefined;
    const last = lastAhead(this.#run.training, step, this.#staleness);
    for (let ahead = step; ahead <= last; ahead++) if (!this.#begun.has(ahead)) this.#begin(ahead, progress);
    const { rollout, after, answer } = this.#begun.get(step) as StartedRollout;
    void answer();
    const played = await rollout;
    this.#begun.delete(step);
    const staleness = this.#staleness === 0 ? {} : { staleness: progress.step - after };
    return { ...played, ...staleness, seconds: clock.seconds() - started };
  }

  /**
   * Begins the episodes after a step whose update computes now, once the messages of the update are sent. Their agents
   * answer after `answerNext`, or in `next`.
   */
  beginNext(position: StepPosition): void {
    if (this.#staleness > 0 || this.#run.executor.waits !== true) return;
    this.#due = position;
    macrotask(() => {
      if (this.#due === position && !this.#end.signal.aborted) this.#begin(position.step + 1, position, true);
    });
  }

  /** Lets the agents of a rollout answer that has begun, and waits until their requests are sent. */
  async answerNext({ step }: StepPosition): Promise<void> {
    const begun = this.#begun.get(step + 1);
    if (begun === undefined) return;
    await begun.answer();
    await nextMacrotask();
  }

  /** Ends the rollouts that have begun, and waits for them. */
  async [Symbol.asyncDispose](): Promise<void> {
    this.#end.abort(new Error('the run has ended, so this episode is not needed'));
    await Promise.allSettled([...this.#begun.values()].map(({ rollout }) => rollout));
    this.#begun.clear();
  }

  /** @param waits Whether the agents wait until they may answer */
  #begin(step: number, { step: after, predictions }: StepPosition, waits = false): void {
    const { trained, host } = this.#run;
    const signal = AbortSignal.any([host.signal, this.#end.signal]);
    const published = trained.flatMap(({ name, handle: { version } }) =>
      version === undefined ? [] : [[name, version] as const],
    );
    const versions: Versions | undefined = this.#staleness === 0 ? undefined : Object.fromEntries(published);
    const run = { ...this.#run, host: { ...host, signal } };
    let settle = () => {};
    const answers = new Promise<void>((resolve) => {
      settle = resolve;
    });
    const ready = waits ? answers : undefined;
    const rollout = playStep(run, { step: step - 1, predictions }, { versions, ready });
    rollout.catch(() => {}); // `next` reports it, unless the run ends before
    const answer = () => {
      settle();
      return answers;
    };
    this.#begun.set(step, { after, rollout, answer });
  }
}

/** The last step whose rollout may begin while this step is the next to learn from. */
function lastAhead({ steps, checkpointEvery }: TrainingRun['training'], step: number, staleness: number): number {
  const checkpoint = Math.ceil(step / checkpointEvery) * checkpointEvery;
  return Math.min(step + staleness, checkpoint, steps);
}
