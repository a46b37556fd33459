import { fileURLToPath } from 'node:url';
import { defineConfig } from 'vitest/config';

export default defineConfig({
  test: {
    root: fileURLToPath(new URL('../..', import.meta.url)),
    include: ['test/real/*.real.ts'],
    globalSetup: ['./test/global-setup.ts'],
    testTimeout: 600_000, // 50 answers of a real model by two programs
    hookTimeout: 600_000,
  },
});
