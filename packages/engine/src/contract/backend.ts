/**
 * The contract between the training loop and the backend that holds the models. It has the shape of a training protocol
 * over a network: the loss is named, token advantages and behaviour log-probs come from the client, every call is
 * submitted and awaited separately.
 */

import type { Secret } from '../host.js';
import type { Capabilities, Hardware } from './capabilities.js';
import type { Handles, Role } from './handles.js';
import type { WeightsSpec } from './weights-spec.js';

/** A place that holds models, samples from them and trains them: the embedded engine, or a server. */
export interface Backend {
  readonly capabilities: Capabilities;
  readonly hardware: Hardware;
  /**
   * Opens a model.
   * @param name Its name in messages; it identifies nothing
   * @throws CheckpointError, TokenizerError about a directory; BackendError when the backend cannot hold the model
   */
  open<R extends Role>(weights: WeightsSpec, role: R, name: string): Promise<Handles[R]>;
  /** Ends all calls that are under way. Handles reject later calls. */
  dispose(): Promise<void>;
}

/**
 * A text that is equal for equal descriptions of a backend or of a sampling engine. It holds the server's key: never
 * show it and never write it to a file.
 */
export function backendIdentity(spec: { readonly type: string; readonly apiKey?: Secret | undefined }): string {
  return JSON.stringify([spec, spec.apiKey?.reveal()]);
}
