import { fileURLToPath } from 'node:url';
import { defineConfig } from 'vitest/config';

export default defineConfig({
  resolve: { alias: { drmas: fileURLToPath(new URL('../../src/index.ts', import.meta.url)) } },
  test: {
    root: fileURLToPath(new URL('../..', import.meta.url)),
    include: ['test/tinker-sdk/*.sdk.ts'],
    globalSetup: ['./test/global-setup.ts'],
    testTimeout: 900_000, // packages may have to be installed first
    hookTimeout: 120_000,
  },
});
