import type { AdamWSettings } from '@drmas/engine/model';

/** AdamW as most tests take it: without weight decay. */
export const plainAdamW = (learningRate: number): AdamWSettings => ({
  type: 'adamw',
  learningRate,
  beta1: 0.9,
  beta2: 0.99,
  epsilon: 1e-8,
  weightDecay: 0,
});
