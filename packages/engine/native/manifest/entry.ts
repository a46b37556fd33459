type Access = '' | 'const ' | 'private ' | 'const private ';
type Optional = '' | '?';

/** A structure of src/tensor/kernel-arguments.ts that a kernel takes as one argument. */
export type StructKind = 'heads' | 'adamw' | 'sgd' | 'nigt' | 'before' | 'share';

/** One argument, `name: kind`; see kernels.ts for the kinds. */
export type Declaration =
  | `${string}${Optional}: ${Access}${'f32' | 'f64' | 'bf16' | 'weights' | 'i32' | 'offsets'}[${string}`
  | `${string}: ${'size' | `size <= ${string}` | 'f32' | 'bool'}`
  | `${string}${Optional}: ${StructKind}`;

/** One kernel. */
export interface KernelEntry {
  /** The C++ implementation: a header of native/. */
  readonly header?: string;
  /** The TypeScript implementation: a module of src/tensor/reference. */
  readonly reference?: string;
  /**
   * Who has the kernel, if not every set with C++, reference and WGSL:
   * - `host`: there is no C++. All sets on the processor share one implementation, src/tensor/host-kernels.ts.
   * - `fused`: only sets of kernels whose calls are expensive have it, in `Kernels.fused`.
   * - `native`: only the native kernels have it. It measures the processor.
   * - `processor`: all sets on the processor have it, and devices do not.
   */
  readonly only?: 'host' | 'fused' | 'native' | 'processor';
  /** The kernel's result, in one line. */
  readonly computes: string;
  /** More for the documentation of the method: formulas, sources, which outputs are added to. */
  readonly details?: string;
  /** Which sums the kernel takes, and in which order. */
  readonly sums?: string;
  readonly parameters: readonly Declaration[];
  /**
   * `size <= n`: the kernel returns the length of a buffer, at most n. `number`: it returns any number. Undefined: it
   * returns nothing.
   */
  readonly returns?: `size <= ${string}` | 'number';
  /**
   * Values for the test programs. Without one, a buffer gets numbers in [-1, 1) or valid indices. An expression of
   * `r`, the position in the buffer, of sizes, and of `noise()`, `below(n)` and `quotient(a, b)`.
   */
  readonly examples?: Readonly<Record<string, string>>;
}

/** The kernels of one family. */
export type Entries = Readonly<Record<string, KernelEntry>>;
