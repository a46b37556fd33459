import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { shippedSources } from '../../src/engine/tensor/native/build.js';

const beside = (name: string) => fileURLToPath(new URL(`../../test/native/${name}`, import.meta.url));

/** The sources that are compiled, with the flags of one instruction set, to the program that runs all its kernels. */
export const everyKernelSources = (): string[] => [
  join(shippedSources(), 'kernels.cpp'),
  beside('every-kernel.cpp'),
  beside('emulated-tiles.cpp'),
];
