import { kernels } from './declarations.js';

/** The table of kernels in docs/engine.md, from the manifest: a row of Markdown cells each. */
export function kernelRows(): readonly (readonly string[])[] {
  return kernels.map(({ name, header, reference, computes, sums }) => [
    `\`${name}\``,
    computes,
    sums ?? '',
    [`[C++](../native/${header})`, reference && `[TypeScript](../src/tensor/reference/${reference})`]
      .filter(Boolean)
      .join(', '),
  ]);
}

export const KERNEL_COLUMNS = ['kernel', 'computes', 'order of its sums', 'source'] as const;
