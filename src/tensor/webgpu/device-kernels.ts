import type { KernelsOn } from '../kernels.js';
import type { DeviceFloats, DeviceHalves, DeviceIntegers, DeviceMemory } from './device-memory.js';

/**
 * The engine's operations on a GPU. What the host wants to see of their memory it has to read, and wait for. Sums of
 * squares are in float32 within 1,024 numbers, and WGSL does not promise that what is no number stays so.
 */
export interface DeviceKernels extends KernelsOn<DeviceFloats, DeviceIntegers, DeviceHalves, Promise<number>> {
  readonly name: 'webgpu';
  /** What the device is called. */
  readonly adapter: string;

  /** Writes the first numbers of a memory; one in bfloat16 begins at an even number. */
  write(to: DeviceFloats, from: Float32Array): void;
  write(to: DeviceIntegers, from: Int32Array): void;
  write(to: DeviceHalves, from: Uint16Array): void;
  /**
   * The contents of memories as bytes, in one wait for the device, however many they are.
   * @throws DeviceError when the device was lost, has too little memory or refused something before
   */
  read(memories: readonly DeviceMemory[]): Promise<ArrayBuffer[]>;
  /** What was given to the device since the start. */
  readonly counts: { readonly dispatches: number; readonly submits: number; readonly bindGroups: number };
}
