import { fileURLToPath } from 'node:url';
import { defineConfig } from 'vitest/config';
import { base } from '../../vitest.config.js';

export default defineConfig({
  ...base,
  test: {
    ...base.test,
    root: fileURLToPath(new URL('../..', import.meta.url)),
    include: ['test/samplers/*.sampler.ts'],
    globalSetup: ['./test/global-setup.ts', './test/compile-workers.ts'],
    testTimeout: 600_000, // an engine on two cores
    hookTimeout: 120_000,
  },
});
