/** What the main thread and the engine's worker say to each other. */
import type { GenerateRequest } from '../../../contract/sampling.js';
import type { DecoderOptions } from '../../../model/decoder/decoder.js';
import type { SamplerResult } from '../../../model/decoder/sampling/decoder-sampler.js';
import type { Engine } from './engine.js';

/** Engine methods that are called by name and answered once. */
export type EngineMethod =
  | 'createBase'
  | 'createPolicy'
  | 'dropPolicy'
  | 'logits'
  | 'forward'
  | 'forwardBackward'
  | 'optimStep'
  | 'publish'
  | 'sync'
  | 'copyWeights'
  | 'resetOptimizer'
  | 'exportState'
  | 'exportBase'
  | 'exportMerged'
  | 'baseHash'
  | 'beginState'
  | 'fillState'
  | 'endState'
  | 'createCritic'
  | 'criticValues'
  | 'criticForwardBackward'
  | 'criticOptimStep'
  | 'exportCritic'
  | 'importHead';

export type EngineArguments<M extends EngineMethod> = Parameters<Engine[M]>;
export type EngineResult<M extends EngineMethod> = ReturnType<Engine[M]>;

export interface WorkerSettings extends DecoderOptions {
  readonly threads: number;
}

export type ToWorker =
  | { readonly type: 'call'; readonly id: number; readonly method: EngineMethod; readonly args: readonly unknown[] }
  | {
      readonly type: 'generate';
      readonly requests: readonly { readonly id: number; readonly request: GenerateRequest }[];
    }
  | { readonly type: 'cancel'; readonly ids: readonly number[] }
  | { readonly type: 'pause' | 'resume' | 'dispose' };

/** An error crosses the thread border as plain data. */
export interface PlainError {
  readonly name: string;
  readonly message: string;
}

export type FromWorker =
  | {
      readonly type: 'ready';
      readonly kernels: string;
      readonly isa: string;
      readonly threads: number;
      readonly notice?: string | undefined;
    }
  | { readonly type: 'progress'; readonly message: string }
  | { readonly type: 'failed'; readonly error: PlainError }
  | { readonly type: 'answer'; readonly id: number; readonly value?: unknown; readonly error?: PlainError }
  | { readonly type: 'generated'; readonly results: readonly SamplerResult[] }
  | { readonly type: 'refused'; readonly id: number; readonly error: PlainError };
