/** The memory that kernels work on: this process's own, or a device's, which the host cannot index. */

import type { DeviceBfloat16s, DeviceFloats, DeviceIntegers } from './device-memory.js';
import type { WeightArray } from './kernel-arguments.js';

/** Numbers in float32. */
export type Floats = Float32Array | DeviceFloats;
/** Numbers in int32. */
export type Integers = Int32Array | DeviceIntegers;
/** Numbers in bfloat16. */
export type Bfloat16s = Uint16Array | DeviceBfloat16s;
/** A matrix that is only read. */
export type WeightMemory = Floats | Bfloat16s;

export interface AnyMemoryKinds {
  readonly floats: Floats;
  readonly integers: Integers;
  readonly bfloat16: Bfloat16s;
  readonly sum: number | Promise<number>;
}

/** Whether the host can index a memory. */
export const isOnHost = (memory: WeightMemory): memory is WeightArray => ArrayBuffer.isView(memory);

export const isInBfloat16 = (memory: WeightMemory): memory is Bfloat16s =>
  isOnHost(memory) ? memory instanceof Uint16Array : memory.kind === 'bfloat16';

/** Lets the host write all of a memory: in place if it can, else into zeros that are then written at once. */
export function fillOnHost(
  kernels: { write(to: Floats, from: Float32Array): void },
  memory: Floats,
  fill: (numbers: Float32Array) => void,
): void {
  if (isOnHost(memory)) {
    fill(memory);
    return;
  }
  const numbers = new Float32Array(memory.length);
  fill(numbers);
  kernels.write(memory, numbers);
}
