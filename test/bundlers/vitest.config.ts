import { fileURLToPath } from 'node:url';
import { defineConfig } from 'vitest/config';

export default defineConfig({
  test: {
    root: fileURLToPath(new URL('../..', import.meta.url)),
    include: ['test/bundlers/*.bundlers.ts'],
    globalSetup: ['./test/global-setup.ts'],
    testTimeout: 600_000, // Next.js compiles, while other work may have the cores
    hookTimeout: 900_000,
  },
});
