import type { DeviceCounts, FusedKernels, KernelsOn, StoredMatrix } from '@drmas/engine/kernels';
import type { DeviceBfloat16s, DeviceFloats, DeviceIntegers } from './device-memory.js';

export interface DeviceMemoryKinds {
  readonly floats: DeviceFloats;
  readonly integers: DeviceIntegers;
  readonly bfloat16: DeviceBfloat16s;
  readonly sum: Promise<number>;
}

/**
 * The kernels on a GPU. The host has to read their memory, and to wait for it. Sums of squares are in float32 within
 * 1,024 numbers, and WGSL does not promise that not-a-number stays not-a-number.
 */
export interface DeviceKernels extends KernelsOn<DeviceMemoryKinds> {
  readonly name: 'webgpu';
  /** The name of the device. */
  readonly adapter: string;
  readonly mostNumbers: number;

  /** As in `KernelMemory`; all matrices are read as they are stored. */
  stored<Weight extends DeviceFloats | DeviceBfloat16s>(matrix: StoredMatrix<Weight>): Weight;
  /** Undefined if they give rows other bits. */
  readonly fused: FusedKernels<DeviceMemoryKinds> | undefined;
  readonly counts: DeviceCounts;
}
