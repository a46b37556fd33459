import type { OptimizerState } from '../../model/decoder/flat-optimizer.js';
import type { OptimizerHeader } from './stored-state.js';

/** Everything that training a policy changes, for checkpoints: copies, flat, in the engine's order. */
export interface PolicyState {
  readonly weights: Float32Array;
  readonly optimizer?: OptimizerState & OptimizerHeader;
}

/** Everything that training a critic changes. */
export interface CriticState {
  /** Its version says nothing: nobody plays a critic. */
  readonly trunk: PolicyState;
  readonly head: { readonly weights: Float32Array; readonly optimizer: OptimizerState };
}
