import { afterEach } from 'vitest';
import type { DeviceKernels } from '../../src/tensor/webgpu/device-kernels.js';
import { findAdapter } from '../../src/tensor/webgpu/open-device.js';
import { createWebgpuKernels, type WebgpuOptions } from '../../src/tensor/webgpu/webgpu.js';
import type { GpuDevice } from '../../src/tensor/webgpu/webgpu-api.js';

interface Opened {
  readonly device: GpuDevice;
  readonly kernels: DeviceKernels;
}

/**
 * A function that opens a device for a test, which is given back behind it.
 * @param backend With `null` the device executes nothing
 */
export function openedDevices(backend?: 'null'): (options?: WebgpuOptions) => Promise<Opened> {
  const opened: DeviceKernels[] = [];
  afterEach(() => {
    for (const kernels of opened.splice(0)) kernels.dispose();
  });
  return async (options) => {
    const adapter = await findAdapter(backend);
    const device = await adapter.open();
    const kernels = createWebgpuKernels(device, adapter.name, options);
    opened.push(kernels);
    return { device, kernels };
  };
}
