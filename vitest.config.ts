import { availableParallelism } from 'node:os';
import { fileURLToPath } from 'node:url';
import { defineConfig } from 'vitest/config';

const path = (name: string) => fileURLToPath(new URL(name, import.meta.url));

export default defineConfig({
  resolve: {
    alias: [
      { find: /^drmas$/, replacement: path('./src/index.ts') },
      { find: /^drmas\/agents$/, replacement: path('./src/agents/index.ts') },
      { find: /^drmas\/testing$/, replacement: path('./src/testing/index.ts') },
      { find: /^(\.\.\/)+(tensor\/)?start-worker\.js$/, replacement: path('./test/support/start-worker.ts') },
    ],
  },
  test: {
    include: [
      'src/**/*.test.ts',
      'scripts/**/*.test.ts',
      'test/**/*.test.ts',
      'recipes/**/*.test.ts',
      'bench/**/*.test.ts',
      'findings/**/*.test.ts',
      'dashboard/**/*.test.ts',
      'site/**/*.test.ts',
    ],
    setupFiles: ['./test/support/no-open-episodes.ts', './test/support/seeded-properties.ts'],
    globalSetup: ['./test/global-setup.ts', './test/compile-workers.ts', './test/build-dashboard.ts'],
    // Files share their worker's modules: loading those anew for each file takes half of all processor time. What a
    // file changes of its process, such as an environment variable, it puts back.
    isolate: false,
    // A quarter of a worker's time is waiting: for a process, a disk, a deadline.
    maxWorkers: Math.ceil(1.5 * availableParallelism()),
    testTimeout: 60_000,
    hookTimeout: 60_000,
  },
});
