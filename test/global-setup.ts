import { loadNativeKernels } from '../src/engine/tensor/native/load-kernels.js';

/**
 * Builds the native kernels once, so that test files on a fresh machine need not each compile them at the same time.
 */
export default async function setup(): Promise<void> {
  await loadNativeKernels({ threads: 1 });
}
