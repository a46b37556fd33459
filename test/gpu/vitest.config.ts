import { existsSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { defineConfig } from 'vitest/config';

/** Where Debian's package puts SwiftShader, and a loader for it. */
const chromium = '/usr/lib/chromium';

// A loader is looked for where the process was told when it started, so this is for the workers, which start later.
// An empty VK_DRIVER_FILES leaves the choice to the machine.
if (process.env.VK_DRIVER_FILES === undefined && existsSync(`${chromium}/vk_swiftshader_icd.json`)) {
  process.env.VK_DRIVER_FILES = `${chromium}/vk_swiftshader_icd.json`;
  process.env.LD_LIBRARY_PATH = [chromium, process.env.LD_LIBRARY_PATH].filter(Boolean).join(':');
}

export default defineConfig({
  test: {
    root: fileURLToPath(new URL('../..', import.meta.url)),
    include: ['test/gpu/*.gpu.ts'],
    fileParallelism: false,
    isolate: false, // files share a device
    tags: [{ name: 'long', description: 'left out by `npm run test:gpu:short`' }],
    testTimeout: 1_200_000,
    hookTimeout: 1_200_000,
  },
});
