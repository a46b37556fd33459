import { fileURLToPath } from 'node:url';
import { defineConfig } from 'vitest/config';

export default defineConfig({
  test: {
    root: fileURLToPath(new URL('../..', import.meta.url)),
    include: ['test/exports/*.exports.ts'],
    globalSetup: ['./test/global-setup.ts'],
    testTimeout: 120_000, // Python's imports, while other work may have the cores
    hookTimeout: 600_000,
  },
});
