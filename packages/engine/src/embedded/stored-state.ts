import type { StateOptions } from '../contract/handles.js';
import type { OptimizerState } from '../model/decoder/flat-optimizer.js';
import type { StoredTensor } from '../model/formats/safetensors.js';

export interface ExportOptions extends StateOptions {
  readonly hash?: boolean;
}

/** All numbers that training a policy changes, for checkpoints: flat copies, in the engine's order. */
export interface PolicyState {
  readonly weights: Float32Array;
  /** SHA-256 of the weights if it is written into the files, which shows which of them belong together. */
  readonly hash?: string | undefined;
  readonly optimizer?: OptimizerState & OptimizerHeader;
}

export interface CriticState {
  /** Its version has no meaning, since a critic is never sampled. */
  readonly trunk: PolicyState;
  readonly head: { readonly weights: Float32Array; readonly optimizer: OptimizerState };
}

export interface OptimizerHeader extends Pick<OptimizerState, 'type' | 'step'> {
  /** The version under which the weights were published, so that a resumed run continues to count. */
  readonly version: number;
}

/** A policy's state in files: checked, but not read yet. The engine loads it piece by piece. */
export interface StoredState {
  /** The weights, under the names of the files' format. */
  readonly tensors: readonly StoredTensor[];
  readonly optimizer?: OptimizerHeader & {
    /** The optimiser's buffers, under their names in checkpoints, [parameters] each. */
    readonly buffers: readonly StoredTensor[];
  };
}
