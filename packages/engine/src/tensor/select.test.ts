import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, expect, it, onTestFinished, vi } from 'vitest';
import { ArgumentError } from '../base/core/errors.js';
import { selectKernels } from './select.js';
import { webAssembly } from './wasm/webassembly.js';

const noCompiler = { CXX: '/nonexistent', DRMAS_CACHE: join(tmpdir(), 'drmas-never-created') };

describe('selectKernels', () => {
  it('falls back to WebAssembly with one line that says how to get the fast ones', async () => {
    const { kernels, notice } = await selectKernels({ threads: 2, environment: noCompiler });
    expect(kernels).toMatchObject({ name: 'wasm', threads: 2 });
    expect(notice).toMatch(
      /^No native kernels: CXX=\/nonexistent .* WebAssembly ones, .* slower on each core \(threads: 2\)\..*apt install g\+\+.*dnf.*xcode-select/,
    );
    expect(notice).not.toContain('\n');
    kernels.dispose();
  });

  it.skipIf(process.platform === 'win32')(
    'advises by the cause: a compiler that is there need not be installed',
    async () => {
      const root = await mkdtemp(join(tmpdir(), 'drmas-select-'));
      onTestFinished(() => rm(root, { recursive: true }));
      const environment = { ...process.env, CXX: join(root, 'c++'), DRMAS_CACHE: join(root, 'cache') };
      const noticeOf = async (compile: string) => {
        await writeFile(environment.CXX, `#!/bin/sh\n[ "$1" = --version ] && exit 0\n${compile}\n`, { mode: 0o755 });
        const { kernels, notice } = await selectKernels({ threads: 1, environment });
        kernels.dispose();
        return notice;
      };
      const failed = await noticeOf('echo "no space left" >&2; exit 1');
      expect(failed).toMatch(/ failed: no space left\. Using the WebAssembly ones, .* The next start tries again\./);
      const limited = await noticeOf(
        'echo "c++: CPU time limit exceeded signal terminated program cc1plus" >&2; exit 1',
      );
      expect(limited).toMatch(
        / failed: stopped after 600 s of processor time\. .* The files that it finished are kept/,
      );
      for (const notice of [failed, limited]) expect(notice).not.toContain('install');
    },
  );

  it('falls back to the reference where WebAssembly fails too, and says both', async () => {
    const failing = vi.spyOn(webAssembly, 'Module').mockImplementation(function fail() {
      throw new Error('no SIMD');
    });
    const { kernels, notice } = await selectKernels({ threads: 2, environment: noCompiler });
    const forced = selectKernels({ threads: 2, environment: { ...noCompiler, DRMAS_KERNELS: 'wasm' } });
    await expect(forced).rejects.toThrow('DRMAS_KERNELS is wasm, but no SIMD');
    failing.mockRestore();
    expect(kernels.name).toBe('reference');
    expect(notice).toMatch(/^No native kernels: .*\. No WebAssembly kernels: no SIMD\. Using the TypeScript ones, /);
  });

  it('takes the slower ones without a notice when asked to', async () => {
    for (const name of ['wasm', 'reference'] as const) {
      const forced = await selectKernels({ threads: 1, environment: { ...noCompiler, DRMAS_KERNELS: name } });
      expect(forced.kernels.name).toBe(name);
      expect(forced.notice).toBeUndefined();
      const preferred = await selectKernels({ threads: 1, prefer: name, environment: {} });
      expect(preferred.kernels.name).toBe(name);
      expect(preferred.notice).toBeUndefined();
    }
  });

  it('refuses when native ones are asked for and cannot be had, and what it does not know', async () => {
    const ask = (DRMAS_KERNELS: string) =>
      selectKernels({ threads: 1, prefer: 'reference', environment: { ...noCompiler, DRMAS_KERNELS } });
    await expect(ask('native')).rejects.toThrow(/DRMAS_KERNELS is native, but CXX/);
    await expect(ask('native-avx2')).rejects.toThrow(/DRMAS_KERNELS is native-avx2, but CXX/);
    await expect(ask('fast')).rejects.toThrow(ArgumentError);
  });

  it('takes the set of native kernels that has the same bits everywhere, whatever else the processor can do', async () => {
    const fixed = selectKernels({ threads: 1, environment: { ...process.env, DRMAS_KERNELS: 'native-avx2' } });
    const loaded = await fixed.catch((error: Error) => error.message);
    // no compiler, no AVX2
    if (typeof loaded === 'string') return expect(loaded).toMatch(/^DRMAS_KERNELS is native-avx2, but /);
    expect(loaded.kernels).toMatchObject({ name: 'native', isa: process.arch === 'x64' ? 'avx2' : 'portable' });
    loaded.kernels.dispose();
  });
});
