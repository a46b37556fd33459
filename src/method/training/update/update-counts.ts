/** The number of updates that each policy and each critic has had, which the rise of its learning rate follows. */
import type { CountsUpdates } from './update-policy.js';

export class UpdateCounts {
  readonly #counts: Map<string, number>;
  /**
   * The steps before the first step that this object has seen, if their updates were not counted. Checkpoints of
   * earlier versions have no counts. Their models had updates in each step.
   */
  #uncounted: number | undefined;

  /** @param kept The counts of a checkpoint; undefined before the first step, and for a checkpoint without counts */
  constructor(kept?: Readonly<Record<string, number>>) {
    this.#counts = new Map(Object.entries(kept ?? {}));
    if (kept !== undefined) this.#uncounted = 0;
  }

  /**
   * The counts for a checkpoint, in the order of the names: policies update side by side, so the order of their counts
   * is chance. Undefined before the first step.
   */
  get state(): Readonly<Record<string, number>> | undefined {
    if (this.#uncounted === undefined) return undefined;
    return Object.fromEntries([...this.#counts].sort(([a], [b]) => (a < b ? -1 : 1)));
  }

  /** The counts before a step (1, 2, ...), for its updates to raise. */
  before(step: number): CountsUpdates {
    this.#uncounted ??= step - 1;
    const uncounted = this.#uncounted;
    return {
      of: (model, perStep) => this.#counts.get(model) ?? uncounted * perStep,
      set: (model, count) => void this.#counts.set(model, count),
    };
  }
}
