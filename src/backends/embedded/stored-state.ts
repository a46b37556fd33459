import type { OptimizerState } from '../../model/decoder/flat-optimizer.js';
import type { StoredTensor } from '../../model/formats/safetensors.js';

/** What an optimiser's state says beside its buffers. */
export interface OptimizerHeader extends Pick<OptimizerState, 'type' | 'step'> {
  /** The version under which the weights were published, so that a run that goes on counts on. */
  readonly version: number;
}

/** A policy's state as files hold it: checked, not read yet. The engine is fed from it piece by piece. */
export interface StoredState {
  /** The weights, under the names of the files' format. */
  readonly tensors: readonly StoredTensor[];
  readonly optimizer?: OptimizerHeader & {
    /** What the optimiser remembers, under its names in checkpoints, [parameters] each. */
    readonly buffers: readonly StoredTensor[];
  };
}
