/** Imports modules that users write, in TypeScript or JavaScript, from anywhere on disk. */
import * as modules from 'node:module';
import { extname } from 'node:path';
import { fileURLToPath } from 'node:url';

/** The first version of Node that prints a warning about hooks in the loader thread. */
const FIRST_WITH_WARNING = 26;

/** The address of the loader for TypeScript. Joined, so that no bundler follows it into a program that needs none. */
export const loaderUrl = (): string => import.meta.resolve(['tsx', 'esm', 'api'].join('/'));

let prepared: Promise<void> | undefined;

/** Enables Node to import TypeScript, and to find this package from files without an installed copy nearby. */
function prepare(): Promise<void> {
  prepared ??= (async () => {
    // Sources run with a loader for TypeScript, which loads the modules of users too.
    if (extname(fileURLToPath(import.meta.url)) !== '.js') return;
    const { register } = (await import(loaderUrl())) as typeof import('tsx/esm/api');
    register();
    const hook = new URL('./package-hook.js', import.meta.url).href;
    if (Number.parseInt(process.versions.node, 10) < FIRST_WITH_WARNING) return modules.register(hook);
    const { resolveSync } = (await import(hook)) as typeof import('./package-hook.js');
    const { registerHooks } = modules as unknown as { registerHooks?(hooks: { resolve: typeof resolveSync }): void };
    registerHooks?.({ resolve: resolveSync }); // Bun has none
  })();
  return prepared;
}

/** URLs that the loader takes for others: it ends a TypeScript file's path at `?`. Node itself refuses a `\`. */
const UNREADABLE = /%5C|%3F.*\.m?tsx?$/i;

/** Requires that modules can be loaded from a file URL. @throws Error naming the sign that keeps them from it */
export function requireLoadablePath(url: string): void {
  const [sign] = UNREADABLE.exec(url) ?? [];
  if (sign === undefined) return;
  const named = /^%5c/i.test(sign) ? '\\' : '?';
  throw new Error(`a program in a path with ${named} cannot be loaded; rename the folder or the file`);
}

/**
 * The exports of a module.
 * @param url Its absolute file URL
 * @throws The error of the module, or Node's when it cannot be found or compiled
 */
export async function importUserModule(url: string): Promise<Readonly<Record<string, unknown>>> {
  if (url.endsWith('.cts')) throw new Error('a .cts file is CommonJS, and drmas is an ES module; expected .ts or .mts');
  requireLoadablePath(url);
  await prepare();
  return (await import(url)) as Record<string, unknown>;
}
