/** The package of kernels on a GPU. It needs the engine, so the engine knows its name and its interface alone. */
import { DeviceError, messageOf } from '../errors.js';
import type { Kernels } from './kernels.js';

export interface DeviceLimits {
  readonly name: string;
  /** Bytes of one buffer, and of one binding, at most. */
  readonly buffer: number;
  readonly binding: number;
}

/** Kernels that execute nothing and count the memory of each request. */
export type CountingKernels = Kernels & Required<Pick<Kernels, 'counts'>>;

export interface DevicePackage {
  /** The GPU of this machine. @throws DeviceError without one */
  findAdapter(): Promise<DeviceLimits>;
  /** The kernels on it, checked. @throws DeviceError without a GPU, or when it computes wrong */
  openDeviceKernels(): Promise<Kernels>;
  /** @param limits A GPU's limits; without them any memory fits */
  countingKernels(limits?: DeviceLimits): CountingKernels;
}

/** Named by a variable, because it is compiled after the engine, and a bundle may lack it. */
const PACKAGE: string = '@drmas/webgpu';

/** @throws DeviceError (`absent`) if the package is not installed */
export async function devicePackage(): Promise<DevicePackage> {
  try {
    return (await import(PACKAGE)) as DevicePackage;
  } catch (error) {
    const missing = error instanceof Error && 'code' in error && error.code === 'ERR_MODULE_NOT_FOUND';
    const reason = missing ? '' : `: ${messageOf(error)}`;
    throw new DeviceError('absent', `it needs \`npm install ${PACKAGE} webgpu\`${reason}`);
  }
}
