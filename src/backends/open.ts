/** From a recipe's description of a backend to the backend: the only place that knows all of them. */

import type { TrainBackend } from '../contract/backend.js';
import type { Capabilities, Hardware } from '../contract/capabilities.js';
import type { SampleBackend } from '../contract/sampling.js';
import type { PolicySpec } from '../contract/weights.js';
import type { Files } from '../core/files.js';
import { EMBEDDED_CAPABILITIES, EmbeddedBackend } from './embedded/embedded-backend.js';
import type { BackendSpec } from './spec.js';
import { TINKER_CAPABILITIES, TinkerBackend } from './tinker/tinker-backend.js';

export interface OpenOptions {
  /** Of the kernels, where they run in this process. */
  readonly threads: number;
  readonly files: Files;
  /** The policies that will be created. */
  readonly policies: readonly PolicySpec[];
  /** Told what takes long at the start, and what a person should know. */
  readonly onProgress: (message: string) => void;
  /** Told what went wrong and was put right, for the event log. */
  readonly onWarning: (code: string, message: string) => void;
}

export interface OpenBackend extends TrainBackend, SampleBackend {
  readonly hardware: Hardware;
}

interface Kind<Spec extends BackendSpec> {
  /** The most that one of this kind can do; an open one says what it can. */
  readonly capabilities: Capabilities;
  open(spec: Spec, options: OpenOptions): Promise<OpenBackend>;
}

const kinds: { readonly [T in BackendSpec['type']]: Kind<Extract<BackendSpec, { type: T }>> } = {
  embedded: {
    capabilities: EMBEDDED_CAPABILITIES,
    open: ({ recompute }, options) => EmbeddedBackend.start({ ...options, recompute }),
  },
  tinker: { capabilities: TINKER_CAPABILITIES, open: (spec, options) => TinkerBackend.connect(spec, options) },
};

/** What a backend of this description can do at most; known before it is opened. */
export function capabilitiesOf(spec: BackendSpec): Capabilities {
  return kinds[spec.type].capabilities;
}

/** Starts the backend or connects to it. The caller disposes of it. @throws BackendError */
export function openBackend(spec: BackendSpec, options: OpenOptions): Promise<OpenBackend> {
  // The table pairs each type with its own spec, which the compiler cannot follow through an index.
  return (kinds[spec.type] as Kind<BackendSpec>).open(spec, options);
}
