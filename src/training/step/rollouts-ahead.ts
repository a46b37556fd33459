/** Rollouts that begin before the updates of the steps before them: while tools are waited for, others are sampled. */
import type { Recipe } from '../../recipe/recipe.js';
import type { Versions } from '../../rollout/rollout-context.js';
import type { TrainingRun } from '../run-state.js';
import type { Predictions } from './curriculum.js';
import { rolloutStep, type StepRollout } from './rollout-step.js';

/** The updates that a step's rollout may begin before, at most. */
export const stalenessOf = ({ rollout }: Pick<Recipe, 'rollout'>): number => rollout?.staleness ?? 0;

interface Begun {
  readonly after: number;
  readonly rollout: Promise<StepRollout>;
}

/**
 * The rollouts of a run in the order of its steps. With a staleness of S the rollout of step k begins as soon as step
 * k - 1 - S has made its updates, and is played to its end by the weights that were published then: which weights play
 * which episode does not depend on the time that anything takes, so one seed gives one run. Each rollout is learnt
 * from, in order; none is dropped or begun again, so that slow tasks count as much as fast ones. Nothing begins ahead
 * of a checkpoint that the recipe wants, so that a run that goes on from it is the run that was not interrupted. With a
 * staleness of 0 no rollout begins before the updates of the step before it.
 */
export class RolloutsAhead {
  readonly #run: TrainingRun;
  readonly #begun = new Map<number, Begun>();
  readonly #end = new AbortController();

  constructor(run: TrainingRun) {
    this.#run = run;
  }

  /** The rollout of the first step whose updates were not made. Begins those that may begin by now. */
  async next(step: number, predictions: Predictions): Promise<StepRollout> {
    for (let ahead = step; ahead <= lastAhead(this.#run.recipe, step); ahead++)
      if (!this.#begun.has(ahead)) this.#begin(ahead, step - 1, predictions);
    const { rollout, after } = this.#begun.get(step) as Begun;
    const played = await rollout;
    this.#begun.delete(step);
    return stalenessOf(this.#run.recipe) === 0 ? played : { ...played, staleness: step - 1 - after };
  }

  /** Ends what is played, and waits for it. */
  async [Symbol.asyncDispose](): Promise<void> {
    this.#end.abort(new Error('nobody learns from this episode any more'));
    await Promise.allSettled([...this.#begun.values()].map(({ rollout }) => rollout));
    this.#begun.clear();
  }

  #begin(step: number, after: number, predictions: Predictions): void {
    const { recipe, policies, host } = this.#run;
    const signal = AbortSignal.any([host.signal, this.#end.signal]);
    const published = Object.entries(policies).flatMap(([name, { version }]) =>
      version === undefined ? [] : [[name, version] as const],
    );
    const versions: Versions | undefined = stalenessOf(recipe) === 0 ? undefined : Object.fromEntries(published);
    const rollout = rolloutStep({ ...this.#run, host: { ...host, signal } }, step, versions, predictions);
    rollout.catch(() => {}); // whoever takes the step hears of it; that may be nobody, if the run ends before
    this.#begun.set(step, { after, rollout });
  }
}

/** Whether a run that goes on after this step is the one that was not interrupted: no rollout had begun ahead. */
export const goesOnAfter = (recipe: Pick<Recipe, 'rollout' | 'training'>, step: number): boolean =>
  stalenessOf(recipe) === 0 || step % recipe.training.checkpointEvery === 0;

/** The last step whose rollout may begin while this one is the next to learn from. */
function lastAhead(recipe: Recipe, step: number): number {
  const { steps, checkpointEvery } = recipe.training;
  const checkpoint = Math.ceil(step / checkpointEvery) * checkpointEvery;
  return Math.min(step + stalenessOf(recipe), checkpoint, steps);
}
