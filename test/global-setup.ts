import type { TestProject } from 'vitest/node';
import { buildDashboard } from './build-dashboard.js';
import { compileWorkers } from './compile-workers.js';
import { useMemoryFolder } from './support/memory-folder.js';
import { compileTestedSets } from './support/tested-sets.js';

declare module 'vitest' {
  interface ProvidedContext {
    /** Whether slow tests run, so that a file may prepare their kernels. */
    slowTests: boolean;
  }
}

/**
 * Compiles, side by side, what test files would otherwise each compile at the same time: the native kernels, the
 * modules of threads, and the dashboard's page.
 */
export default async (project: TestProject): Promise<() => Promise<void>> => {
  const daily = project.vitest.config.tagsFilter?.includes('!verify') ?? false;
  project.provide('slowTests', !daily);
  const leaveMemory = daily ? await useMemoryFolder() : () => {}; // slow tests write gigabytes
  const [close] = await Promise.all([
    compileWorkers(project),
    compileTestedSets(process.env, { daily }),
    buildDashboard(),
  ]);
  return async () => {
    await close();
    leaveMemory();
  };
};
