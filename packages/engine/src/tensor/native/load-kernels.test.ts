import { spawn } from 'node:child_process';
import { chmod, cp, mkdir, mkdtemp, readdir, readFile, rm, truncate, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { basename, join } from 'node:path';
import { afterAll, afterEach, beforeAll, describe, expect, it, vi } from 'vitest';
import { eventually } from '../../../../../test/support/time-and-chance.js';
import type { Environment } from '../../base/platform/cache-directory.js';
import { shippedSources } from './build.js';
import { findCompiler, run } from './compiler.js';
import { inspectNative, loadNativeKernels, type NativeOptions } from './load-kernels.js';
import { unitsFor } from './units.js';

/** Sources that compile in no time and say which version of them was loaded. */
const KERNELS = 'namespace drmas { int DRMAS_ISA() { return 1; } }\n';
const PRODUCTS = 'namespace drmas { namespace products { int DRMAS_ISA() { return 1; } } }\n';
const BLOCKS = 'namespace drmas { namespace blocks { int DRMAS_ISA() { return 1; } } }\n';
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

/** Prints that the processor has everything. */
const PROCESSOR = `#include <cstdio>
int main() {
  std::puts("{\\"isas\\": [\\"avx512\\", \\"avx2\\", \\"portable\\"], \\"products\\": [\\"amx\\", \\"widened\\"], \\"fastest\\": \\"amx\\"}");
}
`;

async function writeSources(isa: string): Promise<string> {
  const directory = join(root, `sources ${count++}`);
  await mkdir(directory);
  await writeFile(join(directory, 'kernels.cpp'), KERNELS);
  await writeFile(join(directory, 'products.cpp'), PRODUCTS);
  await writeFile(join(directory, 'blocks.cpp'), BLOCKS);
  await writeFile(join(directory, 'bfloat16.cpp'), BFLOAT16);
  await writeFile(join(directory, 'sets.cpp'), 'namespace drmas { int sets = 3; }\n');
  await writeFile(join(directory, 'processor.cpp'), PROCESSOR);
  await writeFile(join(directory, 'addon.cpp'), addon(isa));
  return directory;
}

beforeAll(async () => {
  root = await mkdtemp(join(tmpdir(), 'drmas native '));
  sources = await writeSources('first');
});
afterAll(() => rm(root, { recursive: true }));
afterEach(() => {
  vi.unstubAllEnvs();
  vi.restoreAllMocks();
});

const emptyCache = () => join(root, `cache ${count++}`);

async function load(environment: Environment, { sourceDirectory = sources, ...request }: Partial<NativeOptions> = {}) {
  const messages: string[] = [];
  const result = await loadNativeKernels({
    threads: 1,
    environment: { ...process.env, ...environment },
    sourceDirectory,
    onProgress: (message) => messages.push(message),
    ...request,
  });
  const { isa, path } = 'kernels' in result ? { isa: result.kernels.isa, path: result.addon } : {};
  const builds = messages.filter((message) => message.startsWith('compiling the kernels for')).length;
  const { reason, cause } = 'reason' in result ? result : { reason: undefined, cause: undefined };
  return { isa, path, reason, cause, builds, messages };
}

async function script(content: string): Promise<string> {
  const path = join(root, `compiler ${count++}`);
  await writeFile(path, `#!/bin/sh\n${content}\n`);
  await chmod(path, 0o755);
  return path;
}

/** A compiler that notes when it begins and ends a file. `before` runs first, with the name of the file in $out. */
async function notingCompiler(before = '') {
  const notes = join(root, `notes ${count++}`);
  await writeFile(notes, '');
  const CXX = await script(`[ "$1" = --version ] && exec c++ --version
for word; do [ "$previous" = -o ] && out=$(basename "$word"); previous=$word; done
echo "begin $out" >> '${notes}'
${before}
c++ "$@" || exit 1
echo "end $out" >> '${notes}'`);
  const lines = async () => (await readFile(notes, 'utf8')).trim().split('\n');
  const ended = async () => (await lines()).flatMap((line) => /^end (.*)/.exec(line)?.[1] ?? []).sort();
  return { CXX, lines, ended };
}

/** The files of the only build in a cache. */
async function filesIn(DRMAS_CACHE: string): Promise<string[]> {
  const builds = join(DRMAS_CACHE, 'native');
  const [hash = ''] = await readdir(builds);
  return (await readdir(join(builds, hash))).sort();
}

it('nothing is compiled if Node loads no addons', async () => {
  vi.spyOn(process, 'dlopen').mockImplementation(() => {
    throw Object.assign(new Error('loading addons is disabled'), { code: 'ERR_DLOPEN_DISABLED' });
  });
  const { CXX, lines } = await notingCompiler();
  expect(await load({ DRMAS_CACHE: emptyCache(), CXX })).toMatchObject({
    reason: expect.stringContaining('--no-addons'),
    cause: 'other',
  });
  expect(await lines()).toEqual(['']);
});

describe.runIf(process.arch === 'x64')('the plan of a build', () => {
  it('links what runs on every processor first, whose copies of shared templates the linker keeps', () => {
    expect(unitsFor('x64').map(({ object }) => object)).toEqual([
      ...['portable-blocks.o', 'portable.o', 'portable-products.o', 'amx_emulated.o'],
      ...['avx2-blocks.o', 'avx2.o', 'avx2-products.o'],
      ...['avx512-blocks.o', 'avx512.o', 'avx512-products.o'],
      'avx512bf16.o',
      'amx.o',
      'sets-portable-amx_emulated-avx2-avx512-avx512bf16-amx.o',
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
    const { reason, builds, cause } = await load({ CXX: '/nonexistent/c++', DRMAS_CACHE: emptyCache() });
    expect(reason).toMatch(/^CXX=\/nonexistent\/c\+\+ does not run: .*not found/);
    expect({ builds, cause }).toEqual({ builds: 0, cause: 'no-compiler' });
  });

  it('gives the reason when no compiler is in PATH', async () => {
    const { reason } = await load({ CXX: undefined, PATH: '/nonexistent', DRMAS_CACHE: emptyCache() });
    expect(reason).toBe('no C++ compiler runs (tried c++, g++, clang++)');
  });

  it('repeats the first lines of what a failing compiler says, and leaves nothing behind', async () => {
    const lines = Array.from({ length: 30 }, (_, i) => `echo "error line ${i + 1}" >&2`).join('\n');
    const CXX = await script(`[ "$1" = --version ] && { echo old 1.0; exit 0; }\n${lines}\nexit 1`);
    const DRMAS_CACHE = emptyCache();
    const { reason, cause } = await load({ CXX, DRMAS_CACHE });
    expect(reason).toBe(`${CXX} failed: error line 1\nerror line 2\nerror line 3\nerror line 4`);
    expect(cause).toBe('compiler-failed');
    expect(await filesIn(DRMAS_CACHE)).toEqual([]);
  });

  it('stops a compiler by its processor time and not by the clock', { tags: 'verify' }, async () => {
    const slow = ['-e', 'setTimeout(() => {}, 1500)'];
    expect(await run([process.execPath], slow, process.env, 1)).toMatchObject({ problem: undefined });
    for (const busy of [
      'while :; do :; done',
      'sh -c "while :; do :; done"; echo "CPU time limit exceeded" >&2; exit 1',
    ]) {
      const stopped = await run([await script(busy)], [], process.env, 1);
      expect(stopped).toMatchObject({ problem: 'stopped after 1 s of processor time', limited: true });
    }
  });

  it('gives up after one rebuild when what the compiler makes does not load', { tags: 'verify' }, async () => {
    const CXX = await script(
      '[ "$1" = -O1 ] && exec c++ "$@"\nwhile [ $# -gt 0 ]; do [ "$1" = -o ] && echo rubbish > "$2"; shift; done',
    );
    const { reason, builds } = await load({ CXX, DRMAS_CACHE: emptyCache() });
    expect(reason).toMatch(/avx512\+amx\.node does not load: /);
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

  it('loads an addon that the process has loaded before without a compiler, unless it was damaged', {
    tags: 'verify',
  }, async () => {
    const { path: loaded = '' } = await load({ DRMAS_CACHE: emptyCache() });
    const nowhere = { CXX: '/nonexistent/c++', DRMAS_CACHE: emptyCache() };
    expect(await load(nowhere, { loaded })).toMatchObject({ isa: 'first', builds: 0, path: loaded });
    await truncate(loaded, 5000);
    expect(await load(nowhere, { loaded })).toMatchObject({ isa: undefined, cause: 'no-compiler' });
  });

  it('builds anew when a source changes', { tags: 'verify' }, async () => {
    const DRMAS_CACHE = emptyCache();
    await load({ DRMAS_CACHE });
    expect(await load({ DRMAS_CACHE }, { sourceDirectory: await writeSources('second') })).toMatchObject({
      isa: 'second',
      builds: 1,
    });
    expect(await readdir(join(DRMAS_CACHE, 'native'))).toHaveLength(2);
  });

  it('rebuilds what was damaged in the cache', { tags: 'verify' }, async () => {
    const DRMAS_CACHE = emptyCache();
    await load({ DRMAS_CACHE });
    const [hash = ''] = await readdir(join(DRMAS_CACHE, 'native'));
    const whole = await filesIn(DRMAS_CACHE);
    const ADDON = 'avx512+amx.node';
    const damages: ((directory: string) => Promise<void>)[] = [
      (directory) => truncate(join(directory, ADDON), 5000),
      (directory) => writeFile(join(directory, ADDON), 'not a library'),
      (directory) => rm(join(directory, ADDON)),
      (directory) => rm(join(directory, `${ADDON}.sha256`)),
      async (directory) => {
        await rm(join(directory, ADDON));
        await truncate(join(directory, 'avx512.o'), 100);
      },
    ];
    for (const damage of damages) {
      const copy = emptyCache();
      await cp(DRMAS_CACHE, copy, { recursive: true });
      await damage(join(copy, 'native', hash));
      expect(await load({ DRMAS_CACHE: copy })).toMatchObject({ isa: 'first', builds: 1 });
      expect(await load({ DRMAS_CACHE: copy })).toMatchObject({ isa: 'first', builds: 0 });
      expect(await readdir(join(copy, 'native'))).toEqual([hash]);
      expect(await filesIn(copy)).toEqual(whole);
    }
  });

  it('compiles what the request needs, two files at once, and shares the parts of other sets', {
    tags: 'verify',
  }, async () => {
    const { CXX, lines, ended } = await notingCompiler('sleep 0.2');
    const DRMAS_CACHE = emptyCache();
    const wide = { bfloat16Products: 'widened' } as const;
    expect(await load({ CXX, DRMAS_CACHE }, wide)).toMatchObject({ isa: 'first', builds: 1 });
    const kernels = ['avx512-blocks.o', 'avx512-products.o', 'avx512.o'];
    const first = ['addon.o', 'avx512.node', ...kernels, 'processor', 'sets-avx512.o'].sort();
    expect(await ended()).toEqual(first);
    let running = 0;
    const most = Math.max(...(await lines()).map((line) => (running += line.startsWith('begin') ? 1 : -1)));
    expect(most).toBe(2);
    expect(await load({ CXX, DRMAS_CACHE })).toMatchObject({ isa: 'first', builds: 1 });
    expect(await ended()).toEqual([...first, 'amx.o', 'avx512+amx.node', 'sets-avx512-amx.o'].sort());
    for (const request of [wide, {}])
      expect(await load({ CXX, DRMAS_CACHE }, request)).toMatchObject({ isa: 'first', builds: 0 });
    const { reason } = await load({ CXX, DRMAS_CACHE }, { isa: 'avx2', bfloat16Products: 'amx' });
    expect(reason).toBe('this processor cannot run avx2 with amx');
  });

  it('shares one build among those that start at once', { tags: 'verify' }, async () => {
    const { CXX, ended } = await notingCompiler('sleep 0.1');
    const DRMAS_CACHE = emptyCache();
    await load({ CXX, DRMAS_CACHE }, { isa: 'portable' }); // the processor's program and addon.o are there
    const all = await Promise.all([load({ CXX, DRMAS_CACHE }), load({ CXX, DRMAS_CACHE }), load({ CXX, DRMAS_CACHE })]);
    expect(all.map(({ isa, builds }) => [isa, builds]).sort()).toEqual([
      ['first', 0],
      ['first', 0],
      ['first', 1],
    ]);
    for (const { builds, messages } of all) expect(messages.length > 0).toBe(builds > 0); // one of them reports
    const names = await ended();
    expect(names).toEqual([...new Set(names)]);
  });

  it('takes over from a process that is killed, with the files that it finished', { tags: 'verify' }, async () => {
    const { CXX, lines, ended } = await notingCompiler('[ "$out" = amx.o ] && [ ! -e "$GO" ] && sleep 3 && exit 1');
    const [DRMAS_CACHE, GO] = [emptyCache(), join(root, `go ${count++}`)];
    const script = `import(${JSON.stringify(new URL('./load-kernels.ts', import.meta.url).href)}).then(({ loadNativeKernels }) =>
      loadNativeKernels({ threads: 1, sourceDirectory: ${JSON.stringify(sources)} }))`;
    const child = spawn(process.execPath, ['--import', 'tsx', '-e', script], {
      env: { ...process.env, CXX, DRMAS_CACHE, GO },
      stdio: 'inherit',
    });
    // The compiler's end is not enough: the process has to note the file, which takes a moment on a busy machine.
    const noted = async () =>
      (await readdir(DRMAS_CACHE, { recursive: true })).filter((file) => /\.sha256$/.test(file));
    await eventually(async () => expect(await noted()).toHaveLength(6));
    expect((await ended()).length).toBeGreaterThanOrEqual(6);
    const kept = (await noted()).map((file) => basename(file, '.sha256'));
    child.kill('SIGKILL');
    await writeFile(GO, '');
    expect(await load({ CXX, DRMAS_CACHE, GO })).toMatchObject({ isa: 'first', builds: 1 });
    const began = (await lines()).filter((line) => line.startsWith('begin'));
    expect(began.filter((line) => line === 'begin amx.o')).toHaveLength(2);
    expect(new Set(began)).toHaveProperty('size', 8);
    for (const file of kept) expect(began.filter((line) => line === `begin ${file}`)).toHaveLength(1);
  });

  it('keeps what is compiled when one file takes too much processor time', { tags: 'verify' }, async () => {
    const { CXX, ended } = await notingCompiler('[ "$out" = amx.o ] && while [ ! -e "$GO" ]; do :; done');
    const [DRMAS_CACHE, GO] = [emptyCache(), join(root, `go ${count++}`)];
    const stopped = await load({ CXX, DRMAS_CACHE, GO }, { processorSeconds: 2 });
    expect(stopped).toMatchObject({
      cause: 'out-of-time',
      reason: `${CXX} failed: stopped after 2 s of processor time`,
    });
    await writeFile(GO, '');
    const before = await ended();
    expect(before).toContain('avx512.o');
    expect(await load({ CXX, DRMAS_CACHE, GO })).toMatchObject({ isa: 'first', builds: 1 });
    expect((await ended()).filter((name) => name === 'avx512.o')).toHaveLength(1);
  });

  it('builds with a compiler that does not know the newest flags, without what needs them', {
    tags: 'verify',
  }, async () => {
    const old = join(root, 'old-compiler');
    await writeFile(old, '#!/bin/sh\ncase "$*" in *-mavx512bf16*|*-mamx*) exit 1;; esac\nexec c++ "$@"\n');
    await chmod(old, 0o755);
    expect(await load({ DRMAS_CACHE: emptyCache(), CXX: old })).toMatchObject({ isa: 'first', builds: 1 });
  });

  it('builds among the temporary files where the cache cannot be written to', { tags: 'verify' }, async () => {
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
