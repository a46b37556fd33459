/** Matrix products in one precision, over kernels. */

import type { Precision } from '../contract/architecture.js';
import { BackendError } from '../errors.js';
import { BLOCK_FORMATS, type BlockMatrix } from './blocks.js';
import type { MatrixKind, Share } from './kernel-arguments.js';
import type { StoredMatrix } from './kernel-memory.js';
import type { Kernels } from './kernels.js';
import { type LinearOnto, linearOntoByCalls } from './linear-onto.js';
import { type Floats, type Integers, isInBfloat16, type WeightMemory } from './memory.js';

type PartOfWeightGradient = NonNullable<Kernels['fused']>['partOfWeightGradient'];

/** A matrix in blocks, which products unpack as they read it, or its transpose. */
export interface BlockFactor {
  readonly blocks: BlockMatrix;
  readonly transposed: boolean;
}

export type PackedMatrix = WeightMemory | BlockFactor;

const isInBlocks = (matrix: PackedMatrix): matrix is BlockFactor => 'blocks' in matrix;

type Linear = Omit<Parameters<Kernels['linear']>[0], 'packed'>;

/** The products of `Kernels` in one precision, with the documentation that they have there. */
export interface Products extends Pick<Kernels, 'linearWeightGradient' | 'pack'> {
  readonly precision: Precision;
  /**
   * `Kernels.linear`. Matrices in blocks are not read in bfloat16. In int8 they are multiplied with rounded rows on the
   * way from inputs to outputs. Gradients go back as if rows had not been rounded: rounding has the derivative 0 almost
   * everywhere, so its own is replaced by 1 (a straight-through estimator). They and the matrix are rounded to bfloat16
   * there.
   */
  linear(given: Linear & { readonly packed: PackedMatrix }): void;
  /** The kernels' own `fused.linearOnto` in this precision, or the calls that it replaces. */
  linearOnto(given: LinearOnto<Floats, PackedMatrix>): void;
  /** `fused.partOfWeightGradient` in this precision, if the kernels have it. */
  readonly partOfWeightGradient: ((given: Omit<Parameters<PartOfWeightGradient>[0], 'inBfloat16'>) => void) | undefined;
  /** A zeroed buffer for the packed form of a matrix of this kind. */
  allocate(inputs: number, outputs: number, kind: MatrixKind): WeightMemory;
  /**
   * A matrix that products read; `pack` must be called when the matrix has changed. `matrix.weight` is read anew then.
   * @param kind The matrix's number type; default: as it is now
   */
  hold(matrix: StoredMatrix<WeightMemory>, kind?: MatrixKind): HeldMatrix;
}

/** The packed form of a matrix, or the matrix itself if products read it as it is stored. */
export interface HeldMatrix {
  readonly form: WeightMemory;
  pack(): void;
}

export function productsIn(precision: Precision, kernels: Kernels): Products {
  const products = precision === 'bfloat16' ? roundedProducts(kernels) : float32Products(kernels);
  const { copy, repeat, fused } = kernels;
  const linear: Products['linear'] = ({ packed, ...given }) =>
    isInBlocks(packed) ? linearInBlocks(kernels, precision, packed, given) : products.linear({ packed, ...given });
  const calls = { copy, repeat, linear };
  const inBfloat16 = precision === 'bfloat16';
  return {
    ...products,
    precision,
    linear,
    linearOnto: ({ packed, share, ...given }) => {
      if (fused === undefined || isInBlocks(packed) || (share !== undefined && isInBlocks(share.packed)))
        linearOntoByCalls<Floats, PackedMatrix>(calls, { packed, share, ...given });
      else fused.linearOnto({ inBfloat16, packed, share: share as Share<Floats, WeightMemory> | undefined, ...given });
    },
    partOfWeightGradient: fused && ((given) => fused.partOfWeightGradient({ inBfloat16, ...given })),
    hold: (matrix, kind = isInBfloat16(matrix.weight) ? 'bfloat16' : 'float32') => {
      const stored = kernels.stored(matrix);
      if (stored !== undefined) return { form: stored, pack: () => {} };
      const form = products.allocate(matrix.inputs, matrix.outputs, kind);
      return { form, pack: () => products.pack({ packed: form, ...matrix }) };
    },
  };
}

function linearInBlocks(
  kernels: Kernels,
  precision: Precision,
  { blocks, transposed }: BlockFactor,
  given: Linear,
): void {
  const [forward, back] =
    precision === 'int8'
      ? [kernels.int8BlockLinear, kernels.bfloat16BlockLinearTransposed]
      : [kernels.blockLinear, kernels.blockLinearTransposed];
  const product = transposed ? back : forward;
  if (product === undefined) throw new BackendError(`${kernels.name} kernels read no matrices in blocks`);
  product({ ...given, blocks: blocks.words, format: BLOCK_FORMATS.indexOf(blocks.format) });
}

/** `Kernels.embed` of a table [vocabSize, width], which may be in blocks. */
export function embedTokens(
  kernels: Kernels,
  {
    table,
    ...given
  }: {
    readonly out: Floats;
    readonly table: WeightMemory | BlockMatrix;
    readonly tokens: Integers;
    readonly rows: number;
    readonly width: number;
  },
): void {
  if (!('words' in table)) {
    kernels.embed({ table, ...given });
    return;
  }
  if (kernels.blockEmbed === undefined) throw new BackendError(`${kernels.name} kernels read no tables in blocks`);
  const { words, format, outputs } = table;
  kernels.blockEmbed({ ...given, blocks: words, format: BLOCK_FORMATS.indexOf(format), vocabSize: outputs });
}

/**
 * Writes the matrix [inputs, outputs] of a packed form of the processor's kernels in float32 into `matrix`. That form
 * is panels of n columns: [ceil(outputs / n), inputs, n].
 */
export function unpack(
  kernels: Kernels,
  matrix: Float32Array,
  packed: Float32Array,
  { inputs, outputs }: { readonly inputs: number; readonly outputs: number },
): void {
  const columns = kernels.packedSize({ inputs: 1, outputs: 1 });
  for (let first = 0, at = 0; first < outputs; first += columns)
    for (let i = 0; i < inputs; i++, at += columns) {
      const to = i * outputs + first;
      for (let c = 0; c < columns && first + c < outputs; c++) matrix[to + c] = packed[at + c] as number;
    }
}

type ProductsByCalls = Pick<Products, 'allocate' | 'pack' | 'linearWeightGradient'> & Pick<Kernels, 'linear'>;

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
