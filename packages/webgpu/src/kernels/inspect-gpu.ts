import { DeviceError } from '@drmas/engine/errors';
import { checkDevice, type DeviceCheck } from './check-device.js';
import { type AdapterFacts, findAdapters } from './open-device.js';
import { createWebgpuKernels } from './webgpu.js';

/** The GPU and its kernels, or the reason why there is none. */
export type GpuReport =
  | {
      readonly adapter: AdapterFacts;
      readonly check: DeviceCheck;
      /** Other GPUs, which are not computed on. */
      readonly others: readonly AdapterFacts[];
    }
  | { readonly reason: string };

/** Opens the GPU of this machine, computes a little on it, and gives it back. */
export async function inspectGpu(): Promise<GpuReport> {
  try {
    const [{ open, ...adapter }, ...others] = await findAdapters();
    const kernels = createWebgpuKernels(await open(), adapter.name);
    try {
      return { adapter, check: await checkDevice(kernels), others };
    } finally {
      kernels.dispose();
    }
  } catch (error) {
    if (error instanceof DeviceError) return { reason: error.message };
    throw error;
  }
}
