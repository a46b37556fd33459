import type { TinkerSpec } from './tinker/tinker-spec.js';

/** The engine of this package, in a worker thread of this process. */
export interface EmbeddedSpec {
  readonly type: 'embedded';
  /** Compute the layers' inner values again in the backward pass instead of keeping them: less memory, more time. */
  readonly recompute: boolean;
}

/** How a recipe names what holds its models. */
export type BackendSpec = EmbeddedSpec | TinkerSpec;
