import type { Clock } from './clock.js';
import type { Files, SharedDirectories } from './files.js';
import type { RunListener } from './play/run-listener.js';

/**
 * The devices of the engine on PyTorch: a card of NVIDIA, a GPU of Apple, or the processor, which is for tests.
 * `torch-cpu:1` is a second worker on the processor, to rehearse a team on two cards.
 */
export const TORCH_DEVICES = [
  ...(['cuda', 'cuda:0', 'cuda:1', 'cuda:2', 'cuda:3', 'cuda:4', 'cuda:5', 'cuda:6', 'cuda:7'] as const),
  ...(['mps', 'torch-cpu', 'torch-cpu:1'] as const),
] as const;
export type TorchDevice = (typeof TORCH_DEVICES)[number];

/** The machine and the program around a piece of work. It is made once and passed on unchanged. */
export interface Host {
  /** Threads of the engine's kernels, at least 1. */
  readonly threads: number;
  /** The device of this process's engine. It overrides the recipe's. */
  readonly device?: 'cpu' | 'gpu' | TorchDevice | undefined;
  readonly files: Files;
  readonly clock: Clock;
  /** Fires when the work is to stop. */
  readonly signal: AbortSignal;
  /** Does work that must not be cut short once the signal has fired, such as writing a checkpoint. */
  readonly protect: <Result>(work: () => Promise<Result>) => Promise<Result>;
  /** Receives messages for a person, such as the progress of a download. The event log does not keep them. */
  readonly notify: (message: string) => void;
  /** Receives problems that were solved. The event log, if there is one, keeps them. */
  readonly warn: (code: string, message: string) => void;
  /** Directories that machines share: results of one machine that the others need not compute. */
  readonly shared?: SharedDirectories | undefined;
  /** Watches the episodes while they are played. */
  readonly listener?: RunListener | undefined;
}
