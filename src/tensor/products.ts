/** Matrix products in one precision, over kernels. */
import type { Precision } from '../contract/architecture.js';
import type { MatrixKind } from './kernel-arguments.js';
import type { Kernels } from './kernels.js';
import type { Halves, WeightMemory } from './memory.js';

/** The products of `Kernels` in one precision, with the documentation that they have there. */
export interface Products extends Pick<Kernels, 'linear' | 'linearWeightGradient'> {
  /** A zeroed buffer for the packed form of a matrix of this kind. */
  allocate(inputs: number, outputs: number, kind: MatrixKind): WeightMemory;
  pack(packed: WeightMemory, weight: WeightMemory, inputs: number, outputs: number, transpose: boolean): void;
}

export function productsIn(precision: Precision, kernels: Kernels): Products {
  if (precision === 'float32')
    return {
      allocate: (inputs, outputs, kind) => {
        const length = kernels.packedSize(inputs, outputs);
        return kind === 'bfloat16' ? kernels.allocateBfloat16(length) : kernels.allocate(length);
      },
      pack: kernels.pack,
      linear: kernels.linear,
      linearWeightGradient: kernels.linearWeightGradient,
    };
  return {
    allocate: (inputs, outputs) => kernels.allocateBfloat16(kernels.packedNarrowSize(inputs, outputs)),
    pack: (packed, ...matrix) => kernels.packNarrow(packed as Halves, ...matrix),
    linear: (out, x, packed, ...sizes) => kernels.linearNarrow(out, x, packed as Halves, ...sizes),
    linearWeightGradient: kernels.linearNarrowWeightGradient,
  };
}
