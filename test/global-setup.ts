import type { TestProject } from 'vitest/node';
import { compileTestedSets } from './support/tested-sets.js';

declare module 'vitest' {
  interface ProvidedContext {
    /** Whether slow tests run, so that a file may prepare what they need. */
    slowTests: boolean;
  }
}

/**
 * Builds the native kernels once, so that test files on a fresh machine need not each compile them at the same time.
 */
export default async (project: TestProject) => {
  const daily = project.vitest.config.tagsFilter?.includes('!verify') ?? false;
  project.provide('slowTests', !daily);
  await compileTestedSets(process.env, { daily });
};
