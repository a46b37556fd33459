/** Matrix products in one precision, over kernels. */
import type { Precision } from '../contract/architecture.js';
import { type FusedKernels, linearOntoByCalls } from './fused-kernels.js';
import type { MatrixKind } from './kernel-arguments.js';
import type { Kernels } from './kernels.js';
import { type Floats, type Halves, type Integers, isHalves, type WeightMemory } from './memory.js';

/** The products of `Kernels` in one precision, with the documentation that they have there. */
export interface Products extends Pick<Kernels, 'linear' | 'linearWeightGradient'> {
  /** The kernels' own `fused.linearOnto` in this precision, or the calls that it stands for. */
  readonly linearOnto: Bound<FusedKernels<Floats, Integers, Halves>['linearOnto']>;
  /** `fused.partOfWeightGradient` in this precision, where the kernels have it. */
  readonly partOfWeightGradient: Bound<FusedKernels<Floats, Integers, Halves>['partOfWeightGradient']> | undefined;
  /** A zeroed buffer for the packed form of a matrix of this kind. */
  allocate(inputs: number, outputs: number, kind: MatrixKind): WeightMemory;
  pack(packed: WeightMemory, weight: WeightMemory, inputs: number, outputs: number, transpose: boolean): void;
  /** A matrix that products read; `pack` is to be called when it has changed. */
  hold(weight: WeightMemory, inputs: number, outputs: number, transpose: boolean): HeldMatrix;
}

/** An operation whose precision is given. */
type Bound<Operation> = Operation extends (narrow: boolean, ...rest: infer Rest) => void
  ? (...rest: Rest) => void
  : never;

/** The packed form of a matrix, or the matrix itself where products read it as it lies. */
export interface HeldMatrix {
  readonly form: WeightMemory;
  pack(): void;
}

export function productsIn(precision: Precision, kernels: Kernels): Products {
  const products = precision === 'float32' ? inFloat32(kernels) : inBfloat16(kernels);
  const { copy, repeat, fused } = kernels;
  const calls = { copy, repeat, linear: products.linear };
  const narrow = precision === 'bfloat16';
  return {
    ...products,
    linearOnto: (...product) =>
      fused === undefined ? linearOntoByCalls(calls, ...product) : fused.linearOnto(narrow, ...product),
    partOfWeightGradient: fused && ((...part) => fused.partOfWeightGradient(narrow, ...part)),
    hold: (weight, inputs, outputs, transpose) => {
      const stored = kernels.stored(weight, inputs, outputs, transpose);
      if (stored !== undefined) return { form: stored, pack: () => {} };
      const form = products.allocate(inputs, outputs, isHalves(weight) ? 'bfloat16' : 'float32');
      return { form, pack: () => products.pack(form, weight, inputs, outputs, transpose) };
    },
  };
}

const inFloat32 = (kernels: Kernels): Omit<Products, 'hold' | 'linearOnto' | 'partOfWeightGradient'> => ({
  allocate: (inputs, outputs, kind) => {
    const length = kernels.packedSize(inputs, outputs);
    return kind === 'bfloat16' ? kernels.allocateBfloat16(length) : kernels.allocate(length);
  },
  pack: kernels.pack,
  linear: kernels.linear,
  linearWeightGradient: kernels.linearWeightGradient,
});

const inBfloat16 = (kernels: Kernels): Omit<Products, 'hold' | 'linearOnto' | 'partOfWeightGradient'> => ({
  allocate: (inputs, outputs) => kernels.allocateBfloat16(kernels.packedNarrowSize(inputs, outputs)),
  pack: (packed, ...matrix) => kernels.packNarrow(packed as Halves, ...matrix),
  linear: (out, x, packed, ...sizes) => kernels.linearNarrow(out, x, packed as Halves, ...sizes),
  linearWeightGradient: kernels.linearNarrowWeightGradient,
});
