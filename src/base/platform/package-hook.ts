/**
 * Module hooks, which run in Node's loader thread, for files of users anywhere on disk.
 * - `drmas` is the running package, also if another copy lies near the file or a tsconfig.json names its sources. A
 *   second copy would not know the episodes of the first, and `trainable` would call the model of production.
 * - If Node finds no `zod` near the file, the hooks resolve it to the zod of the running package.
 * - TypeScript files are ES modules, also in folders whose package.json does not declare that (as `npm init` writes
 *   it).
 */
import { createRequire, type ResolveFnOutput, type ResolveHook } from 'node:module';
import { pathToFileURL } from 'node:url';

const here = createRequire(import.meta.url);

export const resolve: ResolveHook = async (specifier, context, nextResolve) => {
  const resolved = await resolveHere(specifier, context, nextResolve);
  const isTypeScript = /\.tsx?(\?|$)/.test(resolved.url);
  return resolved.format === 'commonjs' && isTypeScript ? { ...resolved, format: 'module' } : resolved;
};

async function resolveHere(...[specifier, context, nextResolve]: Parameters<ResolveHook>): Promise<ResolveFnOutput> {
  const url = /^drmas(\/|$)/.test(specifier) ? exportedFile(specifier) : undefined;
  if (url !== undefined) return { url, format: 'module', shortCircuit: true };
  try {
    return await nextResolve(specifier, context);
  } catch (error) {
    if (!/^zod(\/|$)/.test(specifier)) throw error;
    return nextResolve(specifier, { ...context, parentURL: import.meta.url });
  }
}

/** The URL of the running package's file. Undefined if the package exports no such file; Node's error is better. */
function exportedFile(specifier: string): string | undefined {
  try {
    const file = here.resolve(specifier);
    return file.endsWith('.js') ? pathToFileURL(file).href : undefined;
  } catch {
    return undefined;
  }
}
