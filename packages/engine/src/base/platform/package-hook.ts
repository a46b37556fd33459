/**
 * Module hooks for files of users anywhere on disk. `resolve` runs in Node's loader thread. From Node 26 on, which
 * warns of hooks there, `resolveSync` does the same in the main thread.
 * - `drmas` and its libraries, such as `@drmas/engine`, are the running packages, also if another copy lies near the
 *   file or a tsconfig.json names their sources. A second copy would not know the episodes of the first, and
 *   `trainable` would call the model of production.
 * - If Node finds no `zod` near the file, the hooks resolve it to the zod of the running package.
 * - TypeScript files, and JavaScript files with `import` or `export`, are ES modules, also in folders whose
 *   package.json does not declare that (as `npm init` writes it).
 */
import { existsSync, readFileSync } from 'node:fs';
import { createRequire, type ResolveFnOutput, type ResolveHook, type ResolveHookContext } from 'node:module';
import { dirname, join } from 'node:path';
import { fileURLToPath, pathToFileURL } from 'node:url';

const here = createRequire(import.meta.url);
const drmas = drmasAround(dirname(fileURLToPath(import.meta.url))) ?? here;

/**
 * Resolves as the package `drmas` in a folder around this one: a clone, or an installation with an engine of its own.
 */
function drmasAround(folder: string): NodeJS.Require | undefined {
  const manifest = join(folder, 'package.json');
  if (existsSync(manifest) && JSON.parse(readFileSync(manifest, 'utf8')).name === 'drmas')
    return createRequire(manifest);
  return dirname(folder) === folder ? undefined : drmasAround(dirname(folder));
}

export const resolve: ResolveHook = async (specifier, context, nextResolve) => {
  const known = ofPackage(specifier);
  if (known !== undefined) return known;
  try {
    return asModule(await nextResolve(specifier, context));
  } catch (error) {
    if (!isZod(specifier)) throw error;
    return nextResolve(specifier, { ...context, parentURL: import.meta.url });
  }
};

export function resolveSync(
  specifier: string,
  context: ResolveHookContext,
  nextResolve: (specifier: string, context: ResolveHookContext) => ResolveFnOutput,
): ResolveFnOutput {
  if (context.conditions.includes('require')) return nextResolve(specifier, context); // as in the loader thread
  const known = ofPackage(specifier);
  if (known !== undefined) return known;
  try {
    return asModule(nextResolve(specifier, context));
  } catch (error) {
    if (!isZod(specifier)) throw error;
    return nextResolve(specifier, { ...context, parentURL: import.meta.url });
  }
}

function ofPackage(specifier: string): ResolveFnOutput | undefined {
  const url = /^(drmas|@drmas\/[\w-]+)(\/|$)/.test(specifier) ? exportedFile(specifier) : undefined;
  return url === undefined ? undefined : { url, format: 'module', shortCircuit: true };
}

const isZod = (specifier: string) => /^zod(\/|$)/.test(specifier);

/** The format before: `commonjs` with Node 20, none or one of Node's own for TypeScript with later versions. */
const asModule = (resolved: ResolveFnOutput): ResolveFnOutput =>
  isModule(resolved) ? { ...resolved, format: 'module' } : resolved;

function isModule({ url, format }: ResolveFnOutput): boolean {
  if (/\.(m?ts|tsx)(\?|$)/.test(url)) return true;
  if (format === 'module' || !/^file:.*\.jsx?$/.test(url) || url.includes('/node_modules/')) return false;
  return /^\s*(import|export)\b/m.test(readFileSync(fileURLToPath(url), 'utf8'));
}

/** The URL of the running package's file. Undefined if the package exports no such file; Node's error is better. */
function exportedFile(specifier: string): string | undefined {
  try {
    const file = (/^@drmas\/engine(\/|$)/.test(specifier) ? here : drmas).resolve(specifier);
    return file.endsWith('.js') ? pathToFileURL(file).href : undefined;
  } catch {
    return undefined;
  }
}
