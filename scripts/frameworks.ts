/**
 * Tests teams of agent frameworks with the packages as they are on npm. Those packages are installed in separate
 * folders, so that `npm ci` of the project stays small: test/frameworks/node20 for the Node that runs this,
 * test/frameworks/node24 for frameworks that need a newer one, which also comes from npm. Each is installed by its
 * lockfile when that has changed. Arguments behind `--` are passed on to vitest.
 */
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { installLocked, runOrExit } from './support/separate-packages.js';

const root = fileURLToPath(new URL('..', import.meta.url));
const FOLDERS = ['node20', 'node24'];

for (const name of FOLDERS) {
  const folder = join(root, 'test/frameworks', name);
  installLocked(folder);
  runOrExit(process.execPath, [join(root, 'node_modules/typescript-7/bin/tsc'), '-p', folder, '--noEmit'], root);
  const carried = join(folder, 'node_modules/.bin/node');
  const vitest = join(root, 'node_modules/vitest/vitest.mjs');
  const filter = ['--config', 'test/suites.config.ts', '--mode', 'frameworks', `test/frameworks/${name}/`];
  runOrExit(
    existsSync(carried) ? carried : process.execPath,
    [vitest, 'run', ...filter, ...process.argv.slice(2)],
    root,
  );
}
