import type { SetRequest } from '@drmas/engine/internal/tensor/native/kernel-set';
import { compileSets } from '@drmas/engine/internal/tensor/native/load-kernels';
import type { Environment } from '@drmas/engine/platform';

/** The native kernels that the daily tests compare, the default set first. */
const DAILY_SETS: readonly SetRequest[] = [{}, { bfloat16Products: 'widened' }, { isa: 'avx2' }];

/** The native kernels that all tests compare. */
const TESTED_SETS: readonly SetRequest[] = [
  ...DAILY_SETS,
  { isa: 'avx512', bfloat16Products: 'avx512-bf16' },
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
  { daily = false, onProgress }: { daily?: boolean; onProgress?: (message: string) => void } = {},
): Promise<void> {
  const sets = daily ? DAILY_SETS : TESTED_SETS;
  for (const compiled of await compileSets(sets, { environment, onProgress }))
    if ('reason' in compiled && compiled.cause !== 'other') console.log(compiled.reason);
}
