import { fileURLToPath } from 'node:url';
import { defineConfig } from 'vitest/config';

export default defineConfig({
  test: {
    root: fileURLToPath(new URL('../..', import.meta.url)),
    include: ['test/servers/*.servers.ts'],
    globalSetup: ['./test/global-setup.ts'],
    testTimeout: 1_200_000,
    hookTimeout: 300_000,
  },
});
