import { fileURLToPath } from 'node:url';
import { defineConfig } from 'vitest/config';
import { base } from '../../vitest.config.js';

export default defineConfig({
  ...base,
  test: {
    ...base.test,
    root: fileURLToPath(new URL('../..', import.meta.url)),
    include: ['test/ray/*.ray.ts'],
    globalSetup: ['./test/global-setup.ts', './test/compile-workers.ts'],
    testTimeout: 600_000, // two minutes where nothing else runs
    hookTimeout: 900_000, // packages may have to be installed first
  },
});
