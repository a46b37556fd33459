import { chmod, cp, mkdir, mkdtemp, readdir, readFile, rm, truncate, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, afterEach, beforeAll, describe, expect, it, vi } from 'vitest';
import type { Environment } from '../../../base/platform/cache-directory.js';
import { planBuild, shippedSources } from './build.js';
import { findCompiler, run } from './compiler.js';
import { inspectNative, loadNativeKernels } from './load-kernels.js';
import { unitsFor } from './units.js';

/** Sources that compile in no time and say which version of them was loaded. */
const KERNELS = 'namespace drmas { int DRMAS_ISA() { return 1; } }\n';
const BFLOAT16 = 'namespace drmas { int DRMAS_ISA() { return 2; } }\n';
const addon = (isa: string) => `#include <node_api.h>
static napi_value create(napi_env env, napi_callback_info) {
  napi_value object, isa;
  napi_create_object(env, &object);
  napi_create_string_utf8(env, "${isa}", NAPI_AUTO_LENGTH, &isa);
  napi_set_named_property(env, object, "isa", isa);
  return object;
}
NAPI_MODULE_INIT() {
  napi_value function;
  napi_create_function(env, "create", NAPI_AUTO_LENGTH, create, nullptr, &function);
  napi_set_named_property(env, exports, "create", function);
  return exports;
}
`;

const search = await findCompiler();
const missing = 'reason' in search ? search.reason : undefined;

let root: string;
let sources: string;
let count = 0;

async function writeSources(isa: string): Promise<string> {
  const directory = join(root, `sources ${count++}`);
  await mkdir(directory);
  await writeFile(join(directory, 'kernels.cpp'), KERNELS);
  await writeFile(join(directory, 'bfloat16.cpp'), BFLOAT16);
  await writeFile(join(directory, 'addon.cpp'), addon(isa));
  return directory;
}

beforeAll(async () => {
  root = await mkdtemp(join(tmpdir(), 'drmas native '));
  sources = await writeSources('first');
});
afterAll(() => rm(root, { recursive: true }));
afterEach(() => vi.unstubAllEnvs());

const emptyCache = () => join(root, `cache ${count++}`);

async function load(environment: Environment, sourceDirectory = sources) {
  const messages: string[] = [];
  const result = await loadNativeKernels({
    threads: 1,
    environment: { ...process.env, ...environment },
    sourceDirectory,
    onProgress: (message) => messages.push(message),
  });
  const isa = 'kernels' in result ? result.kernels.isa : undefined;
  return { isa, reason: 'reason' in result ? result.reason : undefined, builds: messages.length, messages };
}

async function script(content: string): Promise<string> {
  const path = join(root, `compiler ${count++}`);
  await writeFile(path, `#!/bin/sh\n${content}\n`);
  await chmod(path, 0o755);
  return path;
}

describe.runIf(process.arch === 'x64')('the plan of a build', () => {
  it('links what runs on every processor first, whose copies of shared templates the linker keeps', async () => {
    const { units } = await planBuild({ command: ['c++'], version: 'any' }, shippedSources());
    expect(units.map(({ object }) => object)).toEqual([
      'portable.o',
      'amx_emulated.o',
      'avx2.o',
      'avx512.o',
      'avx512bf16.o',
      'amx.o',
      'addon.o',
    ]);
  });

  it('has the instructions of AMX where the compiler knows them', { tags: 'verify', timeout: 300_000 }, async ({
    skip,
  }) => {
    if ('reason' in search) return skip(search.reason);
    const unit = unitsFor('x64').find(({ object }) => object === 'amx.o');
    const flags = [...(unit?.flags ?? []), ...(unit?.newer ?? [])];
    const compile = (source: string, object: string) =>
      run(search.compiler.command, [...flags, '-O1', '-c', source, '-o', object], process.env);
    const empty = join(root, 'empty.cpp');
    await writeFile(empty, '');
    if ((await compile(empty, join(root, 'empty.o'))).problem !== undefined) return skip('an older compiler');
    const object = join(root, 'amx.o');
    expect((await compile(join(shippedSources(), 'bfloat16.cpp'), object)).problem).toBeUndefined();
    // TDPBF16PS tmm0, tmm4, tmm6, as Intel's manual encodes it: sums, rows, columns.
    expect((await readFile(object)).indexOf(Buffer.from([0xc4, 0xe2, 0x4a, 0x5c, 0xc4]))).toBeGreaterThan(0);
  });
});

describe('without a working compiler', () => {
  it('gives the reason when CXX does not exist', async () => {
    const { reason, builds } = await load({ CXX: '/nonexistent/c++', DRMAS_CACHE: emptyCache() });
    expect(reason).toMatch(/^CXX=\/nonexistent\/c\+\+ does not run: .*ENOENT/);
    expect(builds).toBe(0);
  });

  it('gives the reason when no compiler is in PATH', async () => {
    const { reason } = await load({ CXX: undefined, PATH: '/nonexistent', DRMAS_CACHE: emptyCache() });
    expect(reason).toBe('no C++ compiler runs (tried c++, g++, clang++)');
  });

  it('repeats the first lines of what a failing compiler says, and leaves nothing behind', async () => {
    const lines = Array.from({ length: 30 }, (_, i) => `echo "error line ${i + 1}" >&2`).join('\n');
    const CXX = await script(`[ "$1" = --version ] && { echo old 1.0; exit 0; }\n${lines}\nexit 1`);
    const DRMAS_CACHE = emptyCache();
    const { reason, messages } = await load({ CXX, DRMAS_CACHE });
    expect(reason).toBe(`${CXX} failed: error line 1\nerror line 2\nerror line 3\nerror line 4`);
    expect(messages).toEqual(['compiling the kernels (once; half a minute or more)']);
    expect(await readdir(join(DRMAS_CACHE, 'native'))).toEqual([]);
  });

  it('says of a compiler that does not end that it was stopped', { tags: 'verify' }, async () => {
    const endless = ['-e', 'setInterval(() => {}, 1000)'];
    expect(await run([process.execPath], endless, process.env, 300)).toMatchObject({ problem: 'stopped after 0.3 s' });
  });

  it('gives up after one rebuild when what the compiler makes does not load', async () => {
    const CXX = await script('while [ $# -gt 0 ]; do [ "$1" = -o ] && echo rubbish > "$2"; shift; done');
    const { reason, builds } = await load({ CXX, DRMAS_CACHE: emptyCache() });
    expect(reason).toMatch(/drmas\.node does not load: /);
    expect(builds).toBe(2);
  });
});

describe.skipIf(missing !== undefined)(missing ? `with a compiler (skipped: ${missing})` : 'with a compiler', () => {
  it('builds once, in directories with spaces, and tells what there is', async () => {
    const DRMAS_CACHE = emptyCache();
    const look = () => inspectNative({ environment: { ...process.env, DRMAS_CACHE }, sourceDirectory: sources });
    expect(await look()).toMatchObject({ cache: join(DRMAS_CACHE, 'native'), built: false, reason: undefined });
    expect(await load({ DRMAS_CACHE })).toMatchObject({ isa: 'first', builds: 1 });
    expect(await load({ DRMAS_CACHE })).toMatchObject({ isa: 'first', builds: 0 });
    const inspection = await look();
    expect(inspection.built).toBe(true);
    expect(inspection.compiler?.version).not.toBe('');
  });

  it('builds anew when a source changes', { tags: 'verify' }, async () => {
    const DRMAS_CACHE = emptyCache();
    await load({ DRMAS_CACHE });
    expect(await load({ DRMAS_CACHE }, await writeSources('second'))).toMatchObject({ isa: 'second', builds: 1 });
    expect(await readdir(join(DRMAS_CACHE, 'native'))).toHaveLength(2);
  });

  it('rebuilds what was damaged in the cache', { tags: 'verify' }, async () => {
    const DRMAS_CACHE = emptyCache();
    await load({ DRMAS_CACHE });
    const [hash = ''] = await readdir(join(DRMAS_CACHE, 'native'));
    const damages: ((directory: string) => Promise<void>)[] = [
      (directory) => truncate(join(directory, 'drmas.node'), 5000),
      (directory) => writeFile(join(directory, 'drmas.node'), 'not a library'),
      (directory) => rm(join(directory, 'drmas.node')),
      (directory) => rm(join(directory, 'drmas.node.sha256')),
    ];
    for (const damage of damages) {
      const copy = emptyCache();
      await cp(DRMAS_CACHE, copy, { recursive: true });
      await damage(join(copy, 'native', hash));
      expect(await load({ DRMAS_CACHE: copy })).toMatchObject({ isa: 'first', builds: 1 });
      expect(await load({ DRMAS_CACHE: copy })).toMatchObject({ isa: 'first', builds: 0 });
      expect(await readdir(join(copy, 'native'))).toEqual([hash]);
      expect((await readdir(join(copy, 'native', hash))).sort()).toEqual(['drmas.node', 'drmas.node.sha256']);
    }
  });

  it('lets two build at once', { tags: 'verify' }, async () => {
    const DRMAS_CACHE = emptyCache();
    const both = await Promise.all([load({ DRMAS_CACHE }), load({ DRMAS_CACHE })]);
    expect(both).toMatchObject([
      { isa: 'first', builds: 1 },
      { isa: 'first', builds: 1 },
    ]);
    expect(await readdir(join(DRMAS_CACHE, 'native'))).toHaveLength(1);
  });

  it('builds with a compiler that does not know the newest flags, without what needs them', async () => {
    const old = join(root, 'old-compiler');
    await writeFile(old, '#!/bin/sh\ncase "$*" in *-mavx512bf16*|*-mamx*) exit 1;; esac\nexec c++ "$@"\n');
    await chmod(old, 0o755);
    expect(await load({ DRMAS_CACHE: emptyCache(), CXX: old })).toMatchObject({ isa: 'first', builds: 1 });
  });

  it('builds among the temporary files where the cache cannot be written to', async () => {
    const file = join(root, 'a file');
    await writeFile(file, '');
    const temporary = emptyCache();
    await mkdir(temporary);
    vi.stubEnv('TMPDIR', temporary);
    expect(await load({ DRMAS_CACHE: join(file, 'cache') })).toMatchObject({ isa: 'first', builds: 1 });
    expect(await load({ DRMAS_CACHE: join(file, 'cache') })).toMatchObject({ isa: 'first', builds: 0 });
    expect(await readdir(temporary)).toEqual([expect.stringMatching(/^drmas-/)]);
    vi.stubEnv('TMPDIR', join(file, 'temporary'));
    expect((await load({ DRMAS_CACHE: join(file, 'cache') })).reason).toBeDefined();
  });
});
