/** The messages between the main thread and the engine's worker. */

import type { Device, Precision } from '../../contract/architecture.js';
import type { GenerateRequest } from '../../contract/sampling.js';
import type { DeviceError } from '../../errors.js';
import type { DecoderOptions } from '../../model/decoder/decoder.js';
import type { SamplerResult } from '../../model/decoder/sampling/decoder-sampler.js';
import type { Engine } from './engine.js';
import type { Transferred } from './transferred.js';

/**
 * The engine's methods that are called by name and answered once. The methods of sampling are not among them: they
 * have separate messages.
 */
export type EngineMethod = Exclude<keyof Engine, 'submit' | 'cancel' | 'busy' | 'tick'>;

export type EngineArguments<M extends EngineMethod> = Parameters<Engine[M]>;
export type EngineResult<M extends EngineMethod> =
  Awaited<ReturnType<Engine[M]>> extends Transferred<infer Value> ? Value : Awaited<ReturnType<Engine[M]>>;

export interface WorkerSettings extends DecoderOptions {
  /** Threads of the kernels; at least 1. */
  readonly threads: number;
  /** Default: the processor, unless `DRMAS_KERNELS` names a GPU's kernels. */
  readonly device?: Device | undefined;
  /** Replaces `DRMAS_KERNELS` of the environment. */
  readonly kernels?: string | undefined;
  /** The precisions of the models. Other models are refused, and kernels for them not compiled. Default: all. */
  readonly precisions?: readonly Precision[] | undefined;
  /** The addon of kernels that this process loaded for the same settings before. */
  readonly loaded?: string | undefined;
}

export interface NumberedRequest {
  readonly id: number;
  readonly policy: number;
  readonly request: GenerateRequest;
  /** Each token is sent when it is drawn, in addition to the result at the end. */
  readonly streamed: boolean;
}

export interface StreamedToken {
  readonly id: number;
  readonly token: number;
}

export type ToWorker =
  | { readonly type: 'call'; readonly id: number; readonly method: EngineMethod; readonly args: readonly unknown[] }
  | { readonly type: 'generate'; readonly requests: readonly NumberedRequest[] }
  | { readonly type: 'cancel'; readonly ids: readonly number[] };

/** The message that ends a thread on a GPU. */
export const END = 'end';

/** An error crosses the thread border as plain data. */
export interface PlainError {
  readonly name: string;
  readonly message: string;
  readonly reason?: DeviceError['reason'];
}

export type FromWorker =
  | {
      readonly type: 'ready';
      readonly kernels: string;
      readonly isa: string;
      readonly threads: number;
      readonly notice?: string | undefined;
      /** The addon of the kernels, if it was compiled here. */
      readonly addon?: string | undefined;
    }
  | { readonly type: 'progress'; readonly message: string }
  /** The engine cannot start or cannot continue. */
  | { readonly type: 'failed'; readonly error: PlainError }
  | { readonly type: 'answer'; readonly id: number; readonly value?: unknown; readonly error?: PlainError }
  | { readonly type: 'streamed'; readonly tokens: readonly StreamedToken[] }
  | { readonly type: 'generated'; readonly results: readonly SamplerResult[] }
  | { readonly type: 'refused'; readonly id: number; readonly error: PlainError };
