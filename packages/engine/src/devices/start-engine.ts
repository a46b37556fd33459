/** Starts the engine of a device: this package's own kernels in a thread, or PyTorch in a process. */
import type { EngineDevice } from '../contract/architecture.js';
import { isTorchDevice } from '../contract/architecture.js';
import type { EmbeddedBackend } from '../embedded/embedded-backend.js';
import { type EmbeddedOptions, startEmbedded } from '../embedded/start-embedded.js';

export interface EngineOptions extends Omit<EmbeddedOptions, 'device'> {
  /** Default: the processor, unless `DRMAS_KERNELS` names a GPU's kernels. */
  readonly device?: EngineDevice | undefined;
}

/** @throws BackendError or ArgumentError if the engine cannot start; the signal's reason when it fires */
export async function startEngine({ device, ...options }: EngineOptions): Promise<EmbeddedBackend> {
  if (!isTorchDevice(device)) return startEmbedded({ ...options, device });
  const { startTorch } = await import('../torch/start-torch.js');
  const { files, precisions, recompute, signal, onProgress } = options;
  return startTorch({ device, files, precisions, recompute, signal, onProgress });
}
