/**
 * Module hooks (they run in Node's loader thread) for recipe files, which may lie anywhere.
 * - Where Node finds no package `drmas` or `zod` near the file, the running package and its own dependency are taken.
 * - TypeScript files are ES modules, also in folders whose package.json does not say so (as `npm init` writes it).
 */
import type { ResolveFnOutput, ResolveHook } from 'node:module';

export const resolve: ResolveHook = async (specifier, context, nextResolve) => {
  const found = await resolveHere(specifier, context, nextResolve);
  return found.format === 'commonjs' && /\.tsx?(\?|$)/.test(found.url) ? { ...found, format: 'module' } : found;
};

async function resolveHere(...[specifier, context, nextResolve]: Parameters<ResolveHook>): Promise<ResolveFnOutput> {
  try {
    return await nextResolve(specifier, context);
  } catch (error) {
    if (specifier !== 'drmas' && specifier !== 'zod') throw error;
    return nextResolve(specifier, { ...context, parentURL: import.meta.url });
  }
}
