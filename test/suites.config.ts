/**
 * The suites beside the two groups of tests, by their folder. `npm run verify -- NAME` runs one:
 * `vitest run --config test/suites.config.ts --mode s3`.
 */
import { fileURLToPath } from 'node:url';
import { defineConfig, type ViteUserConfig } from 'vitest/config';
import { base, sources } from '../vitest.config.js';
import { chooseDriver } from './gpu/choose-driver.js';
import { recording } from './support/integrations.js';

const path = (name: string) => fileURLToPath(new URL(name, import.meta.url));

interface Suite {
  /** The test files below the suite's folder. */
  readonly files: string;
  /** Settings beside those of the daily tests. Without `base` they stand alone. */
  readonly test: ViteUserConfig['test'];
  /** Whether the settings of the daily tests hold: names of the package, shared workers, checks after each test. */
  readonly base?: true;
  /** Whether threads start from the modules that SETUP compiled. */
  readonly compiledWorkers?: true;
  /** Settings that depend on this machine. */
  readonly here?: () => Promise<ViteUserConfig['test']>;
}

const SETUP = './test/global-setup.ts';
/** The most seconds that a test and a hook may take. */
const limits = (test: number, hook: number) => ({ testTimeout: 1000 * test, hookTimeout: 1000 * hook });

const suites: Readonly<Record<string, Suite>> = {
  bundlers: {
    files: '*.bundlers.ts',
    // Next.js compiles, while other work may have the cores.
    test: { globalSetup: [SETUP], ...limits(600, 900) },
  },
  evals: {
    files: '*.evals.ts',
    base: true,
    // Python's imports, while other work may have the cores.
    test: limits(600, 300),
  },
  exports: {
    files: '*.exports.ts',
    // Python's imports, while other work may have the cores.
    test: { globalSetup: [SETUP], ...limits(120, 600) },
  },
  frameworks: {
    files: '*/*.framework.ts',
    base: true,
    // vitest-evals adds hooks when it is imported: they must reach the vitest that runs, and not its own copy.
    test: { server: { deps: { inline: ['vitest-evals'] } }, ...limits(120, 120) },
  },
  gateway: {
    files: '*.gateway.ts',
    base: true,
    // Hundreds of processes: seconds on an idle machine, minutes beside other work.
    test: limits(600, 120),
  },
  gpu: {
    files: '*.gpu.ts',
    test: {
      fileParallelism: false,
      isolate: false, // files share a device
      tags: [{ name: 'long', description: 'left out by `npm run verify -- gpu-short`' }],
      ...limits(1200, 1200),
    },
    async here() {
      const missing = await chooseDriver(process.env);
      if (missing === undefined) return {};
      process.stdout.write(`SKIPPED: ${missing}\n`);
      return { include: [], passWithNoTests: true };
    },
  },
  hosts: {
    files: '*.hosts.ts',
    test: { globalSetup: [SETUP], fileParallelism: false, ...limits(600, 300) },
  },
  openworld: {
    files: '*.openworld.ts',
    base: true,
    // Python imports for 20 seconds on an idle machine, for minutes beside other work.
    test: limits(600, 600),
  },
  queue: {
    files: '*.queue.ts',
    compiledWorkers: true,
    test: {
      globalSetup: [SETUP],
      fileParallelism: false,
      ...limits(1200, 120),
    },
  },
  ray: {
    files: '*.ray.ts',
    base: true,
    // A test takes two minutes if nothing else runs. Packages may have to be installed first.
    test: { globalSetup: [SETUP], ...limits(600, 900) },
  },
  real: {
    files: '*.real.ts',
    // 50 answers of a real model by two programs.
    test: { globalSetup: [SETUP], ...limits(600, 600) },
  },
  remote: {
    files: '*.remote.ts',
    test: {
      globalSetup: [SETUP, './test/remote/setup.ts'],
      fileParallelism: false, // one server, which compiles on all cores
      ...limits(900, 600), // first calls compile, and other work may have the cores
    },
  },
  s3: {
    files: '*.s3.ts',
    base: true,
    // A test takes seconds if nothing else runs. Packages may have to be installed first.
    test: { globalSetup: [SETUP], ...limits(300, 600) },
  },
  samplers: {
    files: '*.sampler.ts',
    base: true,
    // An engine on two cores.
    test: { globalSetup: [SETUP], ...limits(600, 120) },
  },
  schemas: {
    files: '*.schemas.ts',
    // Packages may have to be installed first.
    test: limits(120, 600),
  },
  servers: {
    files: '*.servers.ts',
    test: { globalSetup: [SETUP], ...limits(1200, 300) },
  },
  templates: {
    files: '*.templates.ts',
    // Packages may have to be installed first.
    test: limits(300, 900),
  },
  'tinker-sdk': {
    files: '*.sdk.ts',
    // Packages may have to be installed first.
    test: { globalSetup: [SETUP], ...limits(900, 120) },
  },
  tokenizers: {
    files: '*.tokenizers.ts',
    // 20,000 texts of a large vocabulary, while other work may have the cores.
    test: limits(300, 900),
  },
  torch: {
    files: '*.torch.ts',
    base: true,
    // Each engine imports PyTorch for seconds, and the first run installs it.
    test: { fileParallelism: false, ...limits(1800, 900) },
  },
  trackers: {
    files: '*.trackers.ts',
    base: true,
    // Python's imports, while other work may have the cores.
    test: { globalSetup: [SETUP], ...limits(300, 900) },
  },
};

export default defineConfig(async ({ mode }) => {
  const suite = suites[mode];
  const root = { root: path('..') };
  if (suite === undefined) return { test: { ...root, include: [] } }; // knip reads this file in a mode of its own
  const names = suite.compiledWorkers ? base.resolve : { alias: sources };
  const shared: ViteUserConfig = suite.base ? base : { ...(names && { resolve: names }) };
  const include = [`test/${mode}/${suite.files}`];
  return {
    ...shared,
    test: { ...shared.test, ...root, include, ...suite.test, ...recording(), ...(await suite.here?.()) },
  };
});
