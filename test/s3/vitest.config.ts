import { fileURLToPath } from 'node:url';
import { defineConfig } from 'vitest/config';
import { base } from '../../vitest.config.js';

export default defineConfig({
  ...base,
  test: {
    ...base.test,
    root: fileURLToPath(new URL('../..', import.meta.url)),
    include: ['test/s3/*.s3.ts'],
    globalSetup: ['./test/global-setup.ts', './test/compile-workers.ts'],
    testTimeout: 300_000, // seconds where nothing else runs
    hookTimeout: 600_000, // packages may have to be installed first
  },
});
