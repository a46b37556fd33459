import type { Device } from '../contract/architecture.js';
import { ArgumentError } from '../errors.js';

/** `DRMAS_KERNELS` for the kernels of a GPU, which only an engine computes with. */
export const ON_A_GPU = 'webgpu';

/**
 * The device that an engine computes on: the one asked for, else the one in `DRMAS_KERNELS`, else the processor.
 * @throws ArgumentError when the two contradict each other
 */
export function engineDevice(device: Device | undefined, environment: NodeJS.ProcessEnv): Device {
  const named = environment.DRMAS_KERNELS ?? '';
  const forced = named === '' ? undefined : named === ON_A_GPU ? 'gpu' : 'cpu';
  if (device !== undefined && forced !== undefined && device !== forced)
    throw new ArgumentError(`the device is to be ${device}, but DRMAS_KERNELS is ${named}`);
  return device ?? forced ?? 'cpu';
}
