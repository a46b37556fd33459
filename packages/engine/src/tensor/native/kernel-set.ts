/** The sets of native kernels, and the choice of the one that a processor and a request need. */
import type { Bfloat16Products } from '../bfloat16.js';

export type Isa = 'avx512' | 'avx2' | 'portable';

/** One set of kernels: an instruction set, and how products in bfloat16 are computed beside it. */
export interface KernelSet {
  readonly isa: Isa;
  readonly products: Bfloat16Products;
}

export const setName = ({ isa, products }: KernelSet): string => (products === 'widened' ? isa : `${isa}+${products}`);

/** The abilities of a processor, as native/processor.cpp prints it; the fastest first. */
export interface Abilities {
  readonly isas: readonly Isa[];
  readonly products: readonly Bfloat16Products[];
  /** The products in bfloat16 that are faster than widening to float32 beside the first instruction set. */
  readonly fastest: Bfloat16Products;
}

export interface SetRequest {
  /** Instruction set to use; by default the best one that this processor has. */
  readonly isa?: Isa | undefined;
  /**
   * The instructions for products in bfloat16 (`HostKernels.bfloat16Products`); by default this processor's fastest.
   * 'amx-emulated' has the bits of 'amx' anywhere, slowly. 'widened' is enough for models in float32.
   */
  readonly bfloat16Products?: Bfloat16Products | undefined;
}

/** The set that a processor takes for a request, or why it cannot run the wanted one. */
export function chooseSet(
  { isas, products: known, fastest }: Abilities,
  { isa: wanted, bfloat16Products }: SetRequest,
): { readonly set: KernelSet } | { readonly reason: string } {
  const isa = wanted ?? isas[0];
  const beside = isa === 'avx512' ? known : (['widened'] as const);
  const products = bfloat16Products ?? (isa === isas[0] ? fastest : beside[0]) ?? 'widened';
  const runs = products === 'amx-emulated' || beside.includes(products);
  return isa !== undefined && isas.includes(isa) && runs
    ? { set: { isa, products } }
    : { reason: cannotRun({ isa: wanted, bfloat16Products }) };
}

/** The sentence if this processor lacks the wanted instructions. */
export const cannotRun = ({ isa, bfloat16Products }: SetRequest): string =>
  `this processor cannot run ${[isa, bfloat16Products].filter((name) => name !== undefined).join(' with ')}`;
