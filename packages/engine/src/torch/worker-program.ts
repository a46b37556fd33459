import { fileURLToPath } from 'node:url';

/** What Python runs: the folder of the worker in the package that a module of this folder belongs to. */
export const workerProgram = (module: string): string => fileURLToPath(new URL('../../python/drmas_torch', module));
