/** Matrix products in one precision, over kernels. */
import type { Precision } from '../contract/architecture.js';
import type { MatrixKind } from './kernel-arguments.js';
import type { StoredMatrix } from './kernel-memory.js';
import type { Kernels } from './kernels.js';
import { type LinearOnto, linearOntoByCalls } from './linear-onto.js';
import { type Floats, isInBfloat16, type WeightMemory } from './memory.js';

type PartOfWeightGradient = NonNullable<Kernels['fused']>['partOfWeightGradient'];

/** The products of `Kernels` in one precision, with the documentation that they have there. */
export interface Products extends Pick<Kernels, 'linear' | 'linearWeightGradient' | 'pack'> {
  /** The kernels' own `fused.linearOnto` in this precision, or the calls that it replaces. */
  linearOnto(given: LinearOnto<Floats, WeightMemory>): void;
  /** `fused.partOfWeightGradient` in this precision, if the kernels have it. */
  readonly partOfWeightGradient: ((given: Omit<Parameters<PartOfWeightGradient>[0], 'inBfloat16'>) => void) | undefined;
  /** A zeroed buffer for the packed form of a matrix of this kind. */
  allocate(inputs: number, outputs: number, kind: MatrixKind): WeightMemory;
  /** A matrix that products read; `pack` must be called when the matrix has changed. */
  hold(matrix: StoredMatrix<WeightMemory>): HeldMatrix;
}

/** The packed form of a matrix, or the matrix itself if products read it as it is stored. */
export interface HeldMatrix {
  readonly form: WeightMemory;
  pack(): void;
}

export function productsIn(precision: Precision, kernels: Kernels): Products {
  const products = precision === 'float32' ? float32Products(kernels) : roundedProducts(kernels);
  const { copy, repeat, fused } = kernels;
  const calls = { copy, repeat, linear: products.linear };
  const inBfloat16 = precision === 'bfloat16';
  return {
    ...products,
    linearOnto: (given) =>
      fused === undefined ? linearOntoByCalls(calls, given) : fused.linearOnto({ inBfloat16, ...given }),
    partOfWeightGradient: fused && ((given) => fused.partOfWeightGradient({ inBfloat16, ...given })),
    hold: (matrix) => {
      const stored = kernels.stored(matrix);
      if (stored !== undefined) return { form: stored, pack: () => {} };
      const { weight, inputs, outputs } = matrix;
      const form = products.allocate(inputs, outputs, isInBfloat16(weight) ? 'bfloat16' : 'float32');
      return { form, pack: () => products.pack({ packed: form, ...matrix }) };
    },
  };
}

type ProductsByCalls = Omit<Products, 'hold' | 'linearOnto' | 'partOfWeightGradient'>;

const float32Products = (kernels: Kernels): ProductsByCalls => ({
  allocate: (inputs, outputs, kind) => {
    const length = kernels.packedSize({ inputs, outputs });
    return kind === 'bfloat16' ? kernels.allocateBfloat16(length) : kernels.allocate(length);
  },
  pack: kernels.pack,
  linear: kernels.linear,
  linearWeightGradient: kernels.linearWeightGradient,
});

const roundedProducts = (kernels: Kernels): ProductsByCalls => ({
  allocate: (inputs, outputs) => kernels.allocateBfloat16(kernels.bfloat16PackedSize({ inputs, outputs })),
  pack: kernels.bfloat16Pack as Kernels['pack'],
  linear: kernels.bfloat16Linear as Kernels['linear'],
  linearWeightGradient: kernels.bfloat16LinearWeightGradient,
});
