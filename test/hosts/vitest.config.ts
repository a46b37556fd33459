import { fileURLToPath } from 'node:url';
import { defineConfig } from 'vitest/config';

const path = (name: string) => fileURLToPath(new URL(name, import.meta.url));

export default defineConfig({
  resolve: { alias: [{ find: /^drmas$/, replacement: path('../../src/index.ts') }] },
  test: {
    root: path('../..'),
    include: ['test/hosts/*.hosts.ts'],
    globalSetup: ['./test/global-setup.ts'],
    fileParallelism: false,
    testTimeout: 600_000,
    hookTimeout: 300_000,
  },
});
