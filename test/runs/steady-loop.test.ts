// @module-tag verify
import { execFile } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { expect, it } from 'vitest';

const script = fileURLToPath(new URL('../support/steady-loop.ts', import.meta.url));
/**
 * A step's activations are more than 2 MB, so a step in ten that kept them would show. The process grows for about its
 * first hundred steps, until its allocator has enough: the half before the measured one is longer than that.
 */
const MOST_GROWTH = 16 * 2 ** 20;

async function steadyLoop(steps: number, threads: number, kernels?: string): Promise<void> {
  const environment = kernels === undefined ? process.env : { ...process.env, DRMAS_KERNELS: kernels };
  const call = ['--expose-gc', '--import', 'tsx', script, `${steps}`, `${threads}`];
  const { stdout } = await promisify(execFile)('node', call, { env: environment });
  const { allocated, early, late } = JSON.parse(stdout) as Record<'allocated' | 'early' | 'late', number>;
  expect(allocated).toBe(0);
  expect(late - early).toBeLessThan(MOST_GROWTH);
}

it('trains and samples 400 steps without allocating a buffer in the second half or growing in memory', async () => {
  await steadyLoop(400, 1);
}, 300_000);

it('does so for 60 steps on two threads of WebAssembly, which do not keep the process alive', async () => {
  await steadyLoop(60, 2, 'wasm');
}, 300_000);
