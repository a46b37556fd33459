import { fileURLToPath } from 'node:url';

/**
 * What Python runs: the folder of the worker in the package that a module of this folder belongs to. Compiled modules
 * lie one folder deeper, in `dist`.
 */
export const workerProgram = (module: string): string =>
  fileURLToPath(new URL(`${module.endsWith('.ts') ? '' : '../'}../../../python/drmas_torch`, module));
