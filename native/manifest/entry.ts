import type { AdamWStep, Heads, WeightArray } from '../../src/tensor/kernel-arguments.js';
import type { HostKernels } from '../../src/tensor/kernels.js';
import type { MemoryKernels } from '../../src/tensor/memory-kernels.js';
import type { NativeKernels } from '../../src/tensor/native/load-kernels.js';

export interface KernelEntry {
  /** The C++ implementation: a header of native/. */
  readonly header: string;
  /** The TypeScript implementation: a module of src/tensor/reference. */
  readonly reference?: string;
  /** What the kernel computes, in one line. */
  readonly computes: string;
  /** Which sums it takes, and in which order; nothing where it takes none. */
  readonly sums?: string;
  readonly parameters: readonly string[];
  /** `size <= n`: buffers are allocated by the result. `number`: any number. Nothing: the kernel returns nothing. */
  readonly returns?: `size <= ${string}` | 'number';
  /**
   * What the test programs pass, where it is not any number in [-1, 1) or any index: an expression of `r`, the
   * position in the buffer, of sizes, and of `noise()`, `below(n)` and `quotient(a, b)`.
   */
  readonly examples?: Readonly<Record<string, string>>;
  /** It measures the processor and is no part of `HostKernels`. */
  readonly nativeOnly?: true;
}

type Access = '' | 'const ' | 'private ' | 'const private ';

/** How an argument of a TypeScript type is declared. */
type Declaration<T> = [T] extends [Float32Array]
  ? `${string}: ${Access}f32[${string}]`
  : [T] extends [Int32Array]
    ? `${string}: ${Access}${'i32' | 'offsets'}[${string}`
    : [T] extends [Uint16Array]
      ? `${string}: ${Access}bf16[${string}]`
      : [T] extends [WeightArray]
        ? `${string}: ${Access}weights[${string}]`
        : [T] extends [boolean]
          ? `${string}: bool`
          : [T] extends [number]
            ? `${string}: ${'size' | `size <= ${string}` | 'f32'}`
            : [T] extends [Heads]
              ? `${string}: heads`
              : [T] extends [AdamWStep]
                ? `${string}: adamw`
                : never;

type Declarations<P extends readonly unknown[]> = { readonly [i in keyof P]: Declaration<P[i]> };

/** What is no kernel: properties, memory, and the end of the thread pool. */
type Housekeeping =
  | keyof MemoryKernels<never, never, never>
  | 'name'
  | 'isa'
  | 'narrowProducts'
  | 'threads'
  | 'allocate'
  | 'allocateBfloat16'
  | 'allocateIntegers'
  | 'dispose';
export type KernelName = Exclude<keyof NativeKernels, Housekeeping>;

/** Every kernel, each with its parameters as src/tensor/kernels.ts has them. */
export type Manifest = {
  readonly [name in KernelName]: KernelEntry & {
    readonly parameters: Declarations<Parameters<NativeKernels[name]>>;
  } & (name extends keyof HostKernels ? { readonly reference: string } : { readonly nativeOnly: true });
};

/** Some of them: a family. */
export type Entries = Partial<Manifest>;
