/**
 * Module hooks, which run in Node's loader thread, for files of users anywhere on disk.
 * - If Node finds no package `drmas` or `zod` near the file, the hooks resolve them to the running package and its zod.
 * - TypeScript files are ES modules, also in folders whose package.json does not declare that (as `npm init` writes
 * it).
 */
import type { ResolveFnOutput, ResolveHook } from 'node:module';

export const resolve: ResolveHook = async (specifier, context, nextResolve) => {
  const resolved = await resolveHere(specifier, context, nextResolve);
  const isTypeScript = /\.tsx?(\?|$)/.test(resolved.url);
  return resolved.format === 'commonjs' && isTypeScript ? { ...resolved, format: 'module' } : resolved;
};

async function resolveHere(...[specifier, context, nextResolve]: Parameters<ResolveHook>): Promise<ResolveFnOutput> {
  try {
    return await nextResolve(specifier, context);
  } catch (error) {
    if (!/^(drmas|zod)(\/|$)/.test(specifier)) throw error;
    return nextResolve(specifier, { ...context, parentURL: import.meta.url });
  }
}
