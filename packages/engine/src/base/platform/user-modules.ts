/** Imports modules that users write, in TypeScript or JavaScript, from anywhere on disk. */
import { register as registerHooks } from 'node:module';
import { extname } from 'node:path';
import { fileURLToPath } from 'node:url';

let prepared: Promise<void> | undefined;

/** Enables Node to import TypeScript, and to find this package from files without an installed copy nearby. */
function prepare(): Promise<void> {
  prepared ??= (async () => {
    // Sources run with a loader for TypeScript, which loads the modules of users too.
    if (extname(fileURLToPath(import.meta.url)) !== '.js') return;
    // Computed, so that no bundler follows it into a program that imports no modules of users.
    const { register } = (await import(import.meta.resolve('tsx/esm/api'))) as typeof import('tsx/esm/api');
    register();
    registerHooks(new URL('./package-hook.js', import.meta.url));
  })();
  return prepared;
}

/**
 * The exports of a module.
 * @param url Its absolute file URL
 * @throws The error of the module, or Node's when it cannot be found or compiled
 */
export async function importUserModule(url: string): Promise<Readonly<Record<string, unknown>>> {
  if (url.endsWith('.cts')) throw new Error('a .cts file is CommonJS, and drmas is an ES module; expected .ts or .mts');
  await prepare();
  return (await import(url)) as Record<string, unknown>;
}
