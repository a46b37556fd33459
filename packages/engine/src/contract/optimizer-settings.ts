/** The settings of an optimiser's step, and its result. */

/** The settings of an optimiser. `type` names it; its declaration (model/optimizers) has the others. */
export type OptimizerSettings = Readonly<{ type: string; learningRate: number; [setting: string]: unknown }>;

/** The settings of a step. */
export interface OptimStepSettings {
  readonly optimizer: OptimizerSettings;
  /** Gradients with a larger norm are scaled down to this one; 0 switches clipping off. */
  readonly clipNorm: number;
  /**
   * The update is left out when the norm before clipping exceeds this. It needs a backend that knows norms before the
   * update.
   */
  readonly skipAboveNorm?: number;
  /**
   * If the update leaves a weight that is not finite, weights and optimiser go back to their values before it. It costs
   * a copy of both for each step. Only the embedded engine has it.
   */
  readonly undoNonFinite?: boolean;
  /** For a policy with an adapter for each agent. Default: 1 for both parts. */
  readonly partRates?: PartRates;
}

/** Factors of the learning rate of a policy's trunk and of its agents' adapters. 0 leaves that part as it is. */
export interface PartRates {
  readonly trunk: number;
  readonly adapters: number;
}

/** The result of a step. `norm` is the norm of the whole gradient before clipping; absent if the backend has none. */
export type OptimStepResult =
  | { readonly applied: true; readonly norm?: number }
  | {
      readonly applied: false;
      /**
       * `not-finite`: the gradient. `above-limit`: its norm is above `skipAboveNorm`. `failed`: the backend broke.
       */
      readonly why: 'not-finite' | 'above-limit' | 'failed';
      readonly norm?: number;
    };
