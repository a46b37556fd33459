import { fileURLToPath } from 'node:url';
import { defineConfig } from 'vitest/config';
import { chooseDriver } from './choose-driver.js';

export default defineConfig(async () => {
  const missing = await chooseDriver(process.env);
  if (missing !== undefined) process.stdout.write(`SKIPPED: ${missing}\n`);
  return {
    test: {
      root: fileURLToPath(new URL('../..', import.meta.url)),
      include: missing === undefined ? ['test/gpu/*.gpu.ts'] : [],
      passWithNoTests: missing !== undefined,
      fileParallelism: false,
      isolate: false, // files share a device
      tags: [{ name: 'long', description: 'left out by `npm run verify -- gpu-short`' }],
      testTimeout: 1_200_000,
      hookTimeout: 1_200_000,
    },
  };
});
