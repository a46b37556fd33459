import type { FusedKernels } from '../fused-kernels.js';
import type { KernelsOn } from '../kernels.js';
import type { MemoryKernels } from '../memory-kernels.js';
import type { DeviceCounts } from './device-counts.js';
import type { DeviceFloats, DeviceHalves, DeviceIntegers } from './device-memory.js';

/**
 * The engine's operations on a GPU. What the host wants to see of their memory it has to read, and wait for. Sums of
 * squares are in float32 within 1,024 numbers, and WGSL does not promise that what is no number stays so.
 */
export interface DeviceKernels
  extends KernelsOn<DeviceFloats, DeviceIntegers, DeviceHalves, Promise<number>>,
    MemoryKernels<DeviceFloats, DeviceIntegers, DeviceHalves> {
  readonly name: 'webgpu';
  /** What the device is called. */
  readonly adapter: string;
  readonly mostNumbers: number;

  /** As in `MemoryKernels`; every matrix is read as it lies. */
  stored<Weight extends DeviceFloats | DeviceHalves>(
    weight: Weight,
    inputs: number,
    outputs: number,
    transpose: boolean,
  ): Weight;
  /** Undefined where rows get other bits by it. */
  readonly fused: FusedKernels<DeviceFloats, DeviceIntegers, DeviceHalves> | undefined;
  readonly counts: DeviceCounts;
}
