import type { MemoryKinds } from './kernel-arguments.js';

/** The host's copies of memories in float32 (`M['floats']`), in int32 (`M['integers']`) and in bfloat16. */
export type Contents<Memories extends readonly unknown[], M extends MemoryKinds> = {
  -readonly [At in keyof Memories]: Memories[At] extends M['floats']
    ? Float32Array
    : Memories[At] extends M['integers']
      ? Int32Array
      : Uint16Array;
};

type AnyMemory<M extends MemoryKinds> = M['floats'] | M['integers'] | M['bfloat16'];

/** The stored form of a matrix: [inputs, outputs], or [outputs, inputs] with `transpose`. */
export interface StoredMatrix<W> {
  readonly weight: W;
  readonly inputs: number;
  readonly outputs: number;
  readonly transpose: boolean;
}

/**
 * The memory of a set of kernels: allocation, and copies between the host and a device. All of these take effect in
 * order with the kernels.
 */
export interface KernelMemory<M extends MemoryKinds> {
  /** A zeroed buffer. Kernels accept only buffers obtained here, and views of them. */
  allocate(length: number): M['floats'];
  allocateBfloat16(length: number): M['bfloat16'];
  allocateIntegers(length: number): M['integers'];
  /** The same memory as integers. It begins at a boundary of the arena's buffers. */
  integersIn(floats: M['floats']): M['integers'];
  /**
   * Gives back a whole allocation, not a view. Kernels that were called before still see it. Does nothing if memory is
   * collected.
   */
  free(memory: AnyMemory<M>): void;
  /**
   * The first from.length numbers of `to` become the numbers of `from`, which the caller may change again at once.
   * Memory in bfloat16 begins at an even position of its allocation.
   */
  write(to: M['floats'], from: Float32Array): void;
  write(to: M['integers'], from: Int32Array): void;
  write(to: M['bfloat16'], from: Uint16Array): void;
  /**
   * Copies the contents, each into its own array, after one wait for all kernels so far.
   * @throws DeviceError if a device was lost, has too little memory, or refused an earlier call
   */
  read<const Memories extends readonly AnyMemory<M>[]>(memories: Memories): Promise<Contents<Memories, M>>;
  /**
   * The matrix itself as its packed form, on devices whose products read matrices as they are stored. It takes no
   * memory, serves products in float32 and in bfloat16, and follows the weights, so it is packed only once. Undefined
   * on other devices. See `pack`.
   */
  stored(matrix: StoredMatrix<M['floats'] | M['bfloat16']>): M['floats'] | M['bfloat16'] | undefined;
}
