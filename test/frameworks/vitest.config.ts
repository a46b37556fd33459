import { fileURLToPath } from 'node:url';
import { defineConfig } from 'vitest/config';
import { base } from '../../vitest.config.js';

export default defineConfig({
  ...base,
  test: {
    ...base.test,
    root: fileURLToPath(new URL('../..', import.meta.url)),
    include: ['test/frameworks/*/*.framework.ts'],
    testTimeout: 120_000, // a run of each way in, beside other work
    hookTimeout: 120_000,
  },
});
