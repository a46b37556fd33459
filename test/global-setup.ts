import { compileTestedSets } from './support/tested-sets.js';

/**
 * Builds the native kernels once, so that test files on a fresh machine need not each compile them at the same time.
 */
export default () => compileTestedSets();
