import type { OptimizerState } from '../model/decoder/flat-optimizer.js';
import type { OptimizerHeader } from './stored-state.js';

/** All numbers that training a policy changes, for checkpoints: flat copies, in the engine's order. */
export interface PolicyState {
  readonly weights: Float32Array;
  readonly optimizer?: OptimizerState & OptimizerHeader;
}

/** All numbers that training a critic changes. */
export interface CriticState {
  /** Its version has no meaning, since a critic is never sampled. */
  readonly trunk: PolicyState;
  readonly head: { readonly weights: Float32Array; readonly optimizer: OptimizerState };
}
