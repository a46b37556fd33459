/** The optimisers of a policy's updates. */

export interface AdamWSettings {
  readonly type: 'adamw';
  readonly learningRate: number;
  readonly beta1: number;
  readonly beta2: number;
  readonly epsilon: number;
  readonly weightDecay: number;
}

/** As torch.optim.SGD without dampening: the weight decay joins the gradient and, with it, the momentum. */
export interface SgdSettings {
  readonly type: 'sgd';
  readonly learningRate: number;
  /** Share of the last direction that is kept; 0 keeps none. */
  readonly momentum: number;
  /** Steps along gradient + momentum x the new direction. */
  readonly nesterov: boolean;
  readonly weightDecay: number;
}

export type OptimizerSettings = AdamWSettings | SgdSettings;

export interface OptimStepSettings {
  readonly optimizer: OptimizerSettings;
  /** Gradients with a larger norm are scaled down to this one; 0 switches clipping off. */
  readonly clipNorm: number;
  /** Skip the update when the norm before clipping exceeds this. */
  readonly skipAboveNorm?: number;
}

export interface OptimStepResult {
  /** Norm of the whole gradient before clipping; not a number when it was not one, or when the backend does not tell. */
  readonly gradientNorm: number;
  /** False when the step was dropped because its norm was not finite or above `skipAboveNorm`. */
  readonly applied: boolean;
}
