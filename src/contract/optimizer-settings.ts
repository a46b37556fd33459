/** The optimisers, and what a step of one did. */

export interface AdamWSettings {
  readonly type: 'adamw';
  readonly learningRate: number;
  readonly beta1: number;
  readonly beta2: number;
  readonly epsilon: number;
  readonly weightDecay: number;
}

/** torch.optim.SGD without dampening: the weight decay joins the gradient and, with it, the momentum. */
export interface SgdSettings {
  readonly type: 'sgd';
  readonly learningRate: number;
  /** Share of the last direction that is kept; 0 keeps none. */
  readonly momentum: number;
  /** Steps along gradient + momentum x the new direction. */
  readonly nesterov: boolean;
  readonly weightDecay: number;
}

/** Normalised steps along a momentum whose gradients are taken ahead of the weights (N-PG-IGT). */
export interface NigtSettings {
  readonly type: 'nigt';
  /** The length of a step, whatever the gradient's. */
  readonly learningRate: number;
  /** Share of the last direction that is kept; 0 keeps none and looks nowhere ahead. */
  readonly momentum: number;
}

export type OptimizerSettings = AdamWSettings | SgdSettings | NigtSettings;

export interface OptimStepSettings {
  readonly optimizer: OptimizerSettings;
  /** Gradients with a larger norm are scaled down to this one; 0 switches clipping off. */
  readonly clipNorm: number;
  /**
   * The update is left out when the norm before clipping exceeds this. Only where norms are known before the update.
   */
  readonly skipAboveNorm?: number;
}

/** What a step did. `norm` is that of the whole gradient before clipping, absent where the backend cannot tell it. */
export type OptimStepResult =
  | { readonly applied: true; readonly norm?: number }
  | {
      readonly applied: false;
      /**
       * `not-finite`: the gradient. `above-limit`: its norm is above `skipAboveNorm`. `failed`: the backend broke over
       * it.
       */
      readonly why: 'not-finite' | 'above-limit' | 'failed';
      readonly norm?: number;
    };
