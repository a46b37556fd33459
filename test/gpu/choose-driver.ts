/** Which of Vulkan's drivers the tests take. */
import { spawnSync } from 'node:child_process';
import { existsSync } from 'node:fs';
import { delimiter, join } from 'node:path';

/** Where Debian's package puts SwiftShader, and a loader for drivers. */
const CHROMIUM = '/usr/lib/chromium';
const SWIFTSHADER = join(CHROMIUM, 'vk_swiftshader_icd.json');
const LAVAPIPE = /lvp_icd[^/]*\.json$/;

/** Dawn refuses old ones, of Mesa 22 for example. */
const TAKEN = `const { create } = await import('webgpu');
process.exit((await create([]).requestAdapter()) === null ? 1 : 0);`;

/**
 * Sets the environment of the processes that are started later, since a loader looks where its process was told when it
 * started: `DRMAS_TEST_GPU=lavapipe` takes Mesa's driver in software. Otherwise `VK_DRIVER_FILES` counts: an empty
 * value leaves the choice to the machine. Without the variable it is SwiftShader, if installed.
 * @returns The reason why no GPU can be tested, or undefined
 */
export async function chooseDriver(environment: NodeJS.ProcessEnv): Promise<string | undefined> {
  const wanted = environment.DRMAS_TEST_GPU;
  if (wanted === undefined) {
    if (environment.VK_DRIVER_FILES === undefined && existsSync(SWIFTSHADER)) take(environment, SWIFTSHADER);
    return undefined;
  }
  if (wanted !== 'lavapipe') return `DRMAS_TEST_GPU is lavapipe or not set, not ${wanted}`;
  // By its path: Vitest reads its settings without our names of packages.
  const { findVulkan } = await import('../../packages/engine/src/base/platform/vulkan-drivers.js');
  const driver = (await findVulkan(environment)).drivers.find((file) => LAVAPIPE.test(file));
  if (driver === undefined) return 'lavapipe is not installed (Debian: mesa-vulkan-drivers)';
  take(environment, driver);
  const { status } = spawnSync(process.execPath, ['--input-type=module', '-e', TAKEN], { env: environment });
  return status === 0 ? undefined : `${driver} offers Dawn no GPU: it takes Mesa 25, and not Mesa 22`;
}

/** A loader is there with Chromium, whether the machine has one of its own or not. */
function take(environment: NodeJS.ProcessEnv, driver: string): void {
  environment.VK_DRIVER_FILES = driver;
  environment.LD_LIBRARY_PATH = [environment.LD_LIBRARY_PATH, CHROMIUM].filter(Boolean).join(delimiter);
}
