/**
 * Module hooks, which run in Node's loader thread, for files of users anywhere on disk.
 * - `drmas` is the running package, also if another copy lies near the file or a tsconfig.json names its sources. A
 *   second copy would not know the episodes of the first, and `trainable` would call the model of production.
 * - If Node finds no `zod` near the file, the hooks resolve it to the zod of the running package.
 * - TypeScript files, and JavaScript files with `import` or `export`, are ES modules, also in folders whose
 *   package.json does not declare that (as `npm init` writes it).
 */
import { readFileSync } from 'node:fs';
import { createRequire, type ResolveFnOutput, type ResolveHook } from 'node:module';
import { fileURLToPath, pathToFileURL } from 'node:url';

const here = createRequire(import.meta.url);

export const resolve: ResolveHook = async (specifier, context, nextResolve) => {
  const resolved = await resolveHere(specifier, context, nextResolve);
  // The format before: `commonjs` with Node 20, none or one of Node's own for TypeScript with later versions.
  return isModule(resolved) ? { ...resolved, format: 'module' } : resolved;
};

function isModule({ url, format }: ResolveFnOutput): boolean {
  if (/\.(m?ts|tsx)(\?|$)/.test(url)) return true;
  if (format === 'module' || !/^file:.*\.jsx?$/.test(url) || url.includes('/node_modules/')) return false;
  return /^\s*(import|export)\b/m.test(readFileSync(fileURLToPath(url), 'utf8'));
}

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
