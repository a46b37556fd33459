/**
 * A module hook (it runs in Node's loader thread). A recipe file may lie anywhere; where Node finds no package `drmas` or
 * `zod` near it, the running package and its own dependency are taken.
 */
import type { ResolveHook } from 'node:module';

export const resolve: ResolveHook = async (specifier, context, nextResolve) => {
  try {
    return await nextResolve(specifier, context);
  } catch (error) {
    if (specifier !== 'drmas' && specifier !== 'zod') throw error;
    return nextResolve(specifier, { ...context, parentURL: import.meta.url });
  }
};
