import { DeviceError } from '@drmas/engine/errors';
import { checkDevice } from './check-device.js';
import type { DeviceKernels } from './device-kernels.js';
import { type FoundAdapter, findAdapter } from './open-device.js';
import { createWebgpuKernels } from './webgpu.js';

/** The largest difference from the plain kernels that a device may have: the bound of the contract's tests. */
const MOST_GAP = 2e-5;

/**
 * The kernels on a GPU, checked. Where calls of few rows give other bits than calls of many, or fused operations others
 * than the calls that they stand for, it goes without both, and takes more time.
 * @param find The GPU that WebGPU prefers on this machine, or a browser's
 * @throws DeviceError (`absent`) without a GPU; (`refused`) when its numbers are wrong, or a row's bits depend on the
 *   rows beside it even so
 */
export async function openDeviceKernels(find: Find = findAdapter, check = checkDevice): Promise<DeviceKernels> {
  const kernels = (await openChecked(find, check, true)) ?? (await openChecked(find, check, false));
  if (kernels === undefined)
    throw new DeviceError('refused', 'on this GPU the bits of a row depend on the rows that are computed with it');
  return kernels;
}

type Find = () => Promise<FoundAdapter>;

/** A device and its kernels, unless its rows do not keep their bits. An adapter opens one device only. */
async function openChecked(
  find: Find,
  check: typeof checkDevice,
  shortcuts: boolean,
): Promise<DeviceKernels | undefined> {
  const { name, open } = await find();
  const kernels = createWebgpuKernels(await open(), name, { shortcuts });
  try {
    const { gap, rowsKeepBits } = await check(kernels);
    if (!(gap <= MOST_GAP)) throw new DeviceError('refused', `${name} computes wrong: ${gap} off the plain kernels`);
    if (rowsKeepBits) return kernels;
  } catch (error) {
    kernels.dispose();
    throw error;
  }
  kernels.dispose();
  return undefined;
}
