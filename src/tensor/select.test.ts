import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { ArgumentError } from '../core/errors.js';
import { selectKernels } from './select.js';

const noCompiler = { CXX: '/nonexistent', DRMAS_CACHE: join(tmpdir(), 'drmas-never-created') };

describe('selectKernels', () => {
  it('falls back to the reference with one line that says how to get the fast ones', async () => {
    const { kernels, notice } = await selectKernels({ threads: 2, environment: noCompiler });
    expect(kernels.name).toBe('reference');
    expect(notice).toMatch(/^No native kernels: CXX=\/nonexistent .* slower.*apt install g\+\+.*dnf.*xcode-select/);
    expect(notice).not.toContain('\n');
  });

  it('takes the reference without a notice when asked to', async () => {
    const forced = await selectKernels({ threads: 1, environment: { ...noCompiler, DRMAS_KERNELS: 'reference' } });
    expect(forced.kernels.name).toBe('reference');
    expect(forced.notice).toBeUndefined();
    const preferred = await selectKernels({ threads: 1, prefer: 'reference', environment: {} });
    expect(preferred.kernels.name).toBe('reference');
  });

  it('refuses when native ones are asked for and cannot be had, and what it does not know', async () => {
    const ask = (DRMAS_KERNELS: string) =>
      selectKernels({ threads: 1, prefer: 'reference', environment: { ...noCompiler, DRMAS_KERNELS } });
    await expect(ask('native')).rejects.toThrow(/DRMAS_KERNELS is native, but CXX/);
    await expect(ask('fast')).rejects.toThrow(ArgumentError);
  });
});
