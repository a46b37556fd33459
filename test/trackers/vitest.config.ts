import { fileURLToPath } from 'node:url';
import { defineConfig } from 'vitest/config';

export default defineConfig({
  test: {
    root: fileURLToPath(new URL('../..', import.meta.url)),
    include: ['test/trackers/*.trackers.ts'],
    globalSetup: ['./test/global-setup.ts'],
    testTimeout: 300_000, // Python's imports, while other work may have the cores
    hookTimeout: 900_000,
  },
});
