import { checkDevice } from '@drmas/webgpu/internal/kernels/check-device';
import type { DeviceKernels } from '@drmas/webgpu/internal/kernels/device-kernels';
import { findAdapter } from '@drmas/webgpu/internal/kernels/open-device';
import { openDeviceKernels } from '@drmas/webgpu/internal/kernels/open-kernels';
import { createWebgpuKernels, type WebgpuOptions } from '@drmas/webgpu/internal/kernels/webgpu';
import type { GpuDevice } from '@drmas/webgpu/internal/kernels/webgpu-api';
import { afterEach } from 'vitest';

interface Opened {
  readonly device: GpuDevice;
  readonly kernels: DeviceKernels;
}

async function open(backend?: 'null', options?: WebgpuOptions): Promise<Opened> {
  const adapter = await findAdapter(backend);
  const device = await adapter.open();
  return { device, kernels: createWebgpuKernels(device, adapter.name, options) };
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
    const one = await open(backend, options);
    opened.push(one.kernels);
    return one;
  };
}

let shared: Promise<DeviceKernels> | undefined;
/**
 * The kernels that all tests of a process compute on, which no test gives back or lets fail: a driver in software takes
 * seconds to compile the shaders of another device.
 */
export function sharedKernels(): Promise<DeviceKernels> {
  shared ??= open().then(({ kernels }) => kernels);
  return shared;
}

let checked: Promise<DeviceKernels> | undefined;
/** The shared kernels if a device passes its check with all of them, else the kernels that an engine opens. */
export function checkedKernels(): Promise<DeviceKernels> {
  checked ??= sharedKernels().then(async (kernels) =>
    (await checkDevice(kernels)).rowsKeepBits ? kernels : openDeviceKernels(),
  );
  return checked;
}
