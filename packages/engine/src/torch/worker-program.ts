import { fileURLToPath } from 'node:url';

/** The folder that Python runs: the worker in the package of a module of this folder. */
export const workerProgram = (module: string): string => fileURLToPath(new URL('../../python/drmas_torch', module));
