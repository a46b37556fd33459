import type { Environment } from '../../src/base/platform.js';
import type { SetRequest } from '../../src/engine/tensor/native/kernel-set.js';
import { compileSets } from '../../src/engine/tensor/native/load-kernels.js';

/** The native kernels that the tests compare, the default set first. */
const TESTED_SETS: readonly SetRequest[] = [
  {},
  { bfloat16Products: 'widened' },
  { isa: 'avx512', bfloat16Products: 'avx512-bf16' },
  { isa: 'avx2' },
  { isa: 'portable' },
  { isa: 'portable', bfloat16Products: 'amx-emulated' },
  { bfloat16Products: 'amx-emulated' },
];

/**
 * Compiles the sets that this processor can run, unless the cache holds them. Without a compiler it does nothing: the
 * tests say that they are skipped. Prints why a compiler fails.
 */
export async function compileTestedSets(
  environment: Environment = process.env,
  onProgress?: (message: string) => void,
): Promise<void> {
  for (const compiled of await compileSets(TESTED_SETS, { environment, onProgress }))
    if ('reason' in compiled && compiled.cause !== 'other') console.log(compiled.reason);
}
