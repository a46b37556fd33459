/**
 * The native kernels' contract under the address and the undefined-behaviour sanitizer: builds the addon with both,
 * which needs g++ and its libasan, and runs the suite in a Node that has the sanitizer's library loaded first. Then
 * every kernel with four threads under the thread sanitizer, which Node does not bear, so in a program of its own.
 * Any finding ends the run.
 */
import { execFileSync, spawnSync } from 'node:child_process';
import { existsSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { kernelFlags } from '@drmas/engine/internal/tensor/native/units';
import { compileTestedSets } from '../test/support/tested-sets.js';
import { everyKernelSources } from './support/run-program.js';

const GXX = 'g++';
/** A test takes ten times as long with sanitizers, and more where other programs run. */
const PATIENCE = '--testTimeout=300000';
const SUITES = [
  'packages/engine/src/tensor/native/native.test.ts',
  'packages/engine/src/model/decoder/decoder-native.test.ts',
];

/** The path of the sanitizer's library; undefined where the compiler or the library is missing. */
function runtimeLibrary(): string | undefined {
  try {
    const path = execFileSync(GXX, ['-print-file-name=libasan.so'], { encoding: 'utf8', stdio: 'pipe' }).trim();
    return existsSync(path) ? path : undefined;
  } catch {
    return undefined;
  }
}

async function main(): Promise<number> {
  const library = runtimeLibrary();
  if (library === undefined) {
    console.log(`SKIPPED: the sanitizers need ${GXX} and its libasan`);
    return 0;
  }
  const environment = {
    ...process.env,
    CXX: fileURLToPath(new URL('sanitized-c++', import.meta.url)),
  };
  // Here and not by the suite: the compiler has no need of the sanitizer's library in its own process.
  await compileTestedSets(environment, { onProgress: (message) => console.log(`with sanitizers: ${message}`) });
  const { status, signal } = spawnSync(
    'npx',
    ['vitest', 'run', '--mode', 'all', PATIENCE, ...SUITES, ...process.argv.slice(2)],
    {
      stdio: 'inherit',
      env: {
        ...environment,
        LD_PRELOAD: library,
        // Node leaves much to the system when it ends, which is no leak of ours; a test asks for more memory than there
        // is.
        ASAN_OPTIONS: 'detect_leaks=0:allocator_may_return_null=1',
        UBSAN_OPTIONS: 'print_stacktrace=1',
      },
    },
  );
  if (signal !== null) console.error(`ended by ${signal}`);
  if (status !== 0) return status ?? 1;
  underThreadSanitizer();
  return 0;
}

function underThreadSanitizer(): void {
  const directory = mkdtempSync(join(tmpdir(), 'drmas-threads-'));
  try {
    const program = join(directory, 'threads');
    const flags = ['-O1', '-g1', '-fsanitize=thread', ...kernelFlags('portable')];
    execFileSync(GXX, [...flags, ...everyKernelSources(), '-o', program], { stdio: 'inherit' });
    execFileSync(program, ['4'], { stdio: ['ignore', 'ignore', 'inherit'] });
    console.log('every kernel with four threads: no data race');
  } finally {
    rmSync(directory, { recursive: true });
  }
}

process.exitCode = await main();
