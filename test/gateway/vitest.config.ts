import { fileURLToPath } from 'node:url';
import { defineConfig } from 'vitest/config';
import { base } from '../../vitest.config.js';

export default defineConfig({
  ...base,
  test: {
    ...base.test,
    root: fileURLToPath(new URL('../..', import.meta.url)),
    include: ['test/gateway/*.gateway.ts'],
    testTimeout: 600_000, // hundreds of processes: seconds on an idle machine, minutes beside other work
    hookTimeout: 120_000,
  },
});
