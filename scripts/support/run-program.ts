/** Error handling of the project's own programs (`npm run bench`, `npm run findings`). */

import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { messageOf } from '@drmas/engine/errors';
import { shippedSources } from '@drmas/engine/internal/tensor/native/build';
import { KERNEL_SOURCES } from '@drmas/engine/internal/tensor/native/units';

/** Raised when a program is called with wrong arguments. */
export class UsageError extends Error {}

/**
 * Runs a program to its exit code, which `main` may return. After wrong arguments, including errors of `parseArgs`, it
 * prints the usage and exits with 2; after other errors it prints the stack and exits with 1.
 */
export async function runProgram(usage: string, main: () => Promise<number> | Promise<void>): Promise<void> {
  try {
    const code = await main();
    if (typeof code === 'number') process.exitCode = code;
  } catch (error) {
    const wrongRequest =
      error instanceof UsageError ||
      (error instanceof Error && 'code' in error && String(error.code).startsWith('ERR_PARSE_ARGS'));
    process.stderr.write(
      `${wrongRequest ? `${messageOf(error)}\n\n${usage}` : error instanceof Error ? error.stack : error}\n`,
    );
    process.exitCode = wrongRequest ? 2 : 1;
  }
}

const beside = (name: string) => fileURLToPath(new URL(`../../test/native/${name}`, import.meta.url));

/** The sources that are compiled, with the flags of one instruction set, to the program that runs all its kernels. */
export const everyKernelSources = (): string[] => [
  ...KERNEL_SOURCES.map((name) => join(shippedSources(), name)),
  beside('every-kernel.cpp'),
  beside('emulated-tiles.cpp'),
];
