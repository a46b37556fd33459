import { readFileSync } from 'node:fs';
import { availableParallelism } from 'node:os';
import { fileURLToPath } from 'node:url';
import { defineConfig } from 'vitest/config';
import { filesOfGroup, GROUPS } from './test/groups.js';
import { recording } from './test/support/integrations.js';

const path = (name: string) => fileURLToPath(new URL(name, import.meta.url));

const { compilerOptions } = JSON.parse(readFileSync(path('./tsconfig.json'), 'utf8'));
/** The names of the packages are their sources: as tsconfig.json has them, but for files of users anywhere too. */
export const sources = Object.entries<string[]>(compilerOptions.paths).map(([name, [source = '']]) => ({
  find: new RegExp(`^${name.replace('*', '([^.]*)')}$`),
  replacement: path(source).replace('*', '$1'),
}));

/** The settings that all suites share. */
export const base = defineConfig({
  resolve: {
    alias: [
      ...sources,
      { find: /^(\.\.?\/)+([\w-]+\/)*start-worker\.js$/, replacement: path('./test/support/start-worker.ts') },
    ],
  },
  test: {
    tags: [{ name: 'verify', description: 'a slow test: `npm run verify` runs it, `npm test` does not' }],
    // A program that tsx starts in another folder finds the sources of the packages too.
    env: { TSX_TSCONFIG_PATH: path('./tsconfig.json') },
    setupFiles: ['./test/support/setup.ts'],
    globalSetup: ['./test/global-setup.ts'],
    // Files share their worker's modules: loading them anew for each file takes half of all processor time. If a file
    // changes its process, for example an environment variable, it undoes the change.
    isolate: false,
    // A second run takes compiled modules from node_modules/.experimental-vitest-cache: a twelfth less processor time.
    experimental: { fsModuleCache: true },
    // A third worker on two cores takes a twelfth more processor time, because it loads all modules too, and saves at
    // most 4 % by the clock.
    maxWorkers: availableParallelism(),
    // For a test that hangs. A busy machine makes one of 5 s ten times as slow.
    testTimeout: 180_000,
    hookTimeout: 240_000, // a hook may train what a whole file reads
  },
});

/** `--mode verify` runs the slow tests, `--mode all` the slow and the daily ones, no mode the daily ones. */
export default defineConfig(({ mode }) => {
  const group = GROUPS.find((name) => name === mode) ?? 'all'; // knip reads this file in modes of its own
  const root = path('.');
  const daily = new Set(filesOfGroup('test', root));
  const slowFiles = filesOfGroup('verify', root).filter((file) => !daily.has(file));
  return {
    ...base,
    test: {
      ...base.test,
      ...recording(),
      include: group === 'verify' ? filesOfGroup('verify', root) : ['**/*.test.ts'],
      exclude: ['**/{node_modules,.git,dist,templates}/**', ...(group === 'test' ? slowFiles : [])],
      ...(group === 'all' ? {} : { tagsFilter: [group === 'verify' ? 'verify' : '!verify'] }),
    },
  };
});
