import { fileURLToPath } from 'node:url';
import { defineConfig } from 'vitest/config';

const path = (name: string) => fileURLToPath(new URL(name, import.meta.url));

export default defineConfig({
  resolve: {
    alias: [
      { find: /^drmas$/, replacement: path('../../src/index.ts') },
      { find: /^(\.\.?\/)+(platform\/)?start-worker\.js$/, replacement: path('../support/start-worker.ts') },
    ],
  },
  test: {
    root: path('../..'),
    include: ['test/queue/*.queue.ts'],
    globalSetup: ['./test/global-setup.ts', './test/compile-workers.ts'],
    fileParallelism: false,
    testTimeout: 1_200_000,
    hookTimeout: 120_000,
  },
});
