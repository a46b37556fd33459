/**
 * The kernels as ARM processors run them: cross-compiled with the flags that a build there has, run under an
 * emulator, and compared bit for bit with what AVX2 gives here, which the contract suite holds to its formulas. Needs
 * Debian's g++-aarch64-linux-gnu and qemu-user, and a processor with AVX2.
 */
import { execFileSync } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Isa } from '@drmas/engine/internal/tensor/native/kernel-set';
import { kernelFlags } from '@drmas/engine/internal/tensor/native/units';
import { everyKernelSources } from './support/run-program.js';

const ARM = 'aarch64-linux-gnu-g++';
const EMULATOR = 'qemu-aarch64';

const runs = (program: string) => {
  try {
    execFileSync(program, ['--version'], { stdio: 'ignore' });
    return true;
  } catch {
    return false;
  }
};

/** Compiles and runs the program, and returns its output: a buffer a line. */
function compute(directory: string, compiler: string, isa: Isa, more: readonly string[], emulator: readonly string[]) {
  const program = join(directory, isa);
  const flags = ['-O2', ...kernelFlags(isa), ...more, ...everyKernelSources(), '-o', program];
  execFileSync(compiler, flags, { stdio: 'inherit' });
  const [first = program, ...words] = [...emulator, program, '3'];
  return execFileSync(first, words, { encoding: 'utf8', maxBuffer: 2 ** 28 })
    .trim()
    .split('\n');
}

const missing = [ARM, EMULATOR, 'g++'].filter((program) => !runs(program));
if (process.arch !== 'x64' || missing.length > 0) {
  const why = process.arch === 'x64' ? `without ${missing.join(' and ')}` : `on ${process.arch}, only on x64`;
  console.log(`SKIPPED: ARM is not emulated ${why} (Debian: apt install g++-aarch64-linux-gnu qemu-user)`);
} else {
  const directory = mkdtempSync(join(tmpdir(), 'drmas-arm-'));
  try {
    const arm = compute(directory, ARM, 'portable', ['-static'], [EMULATOR]);
    const here = compute(directory, 'g++', 'avx2', [], []);
    const differing = here.filter((line, i) => arm[i] !== line).map((line) => line.split(' ', 1)[0]);
    if (arm.length !== here.length || differing.length > 0) {
      console.error(`ARM computes other bits than AVX2 in ${[...new Set(differing)].join(', ')}`);
      process.exitCode = 1;
    } else console.log(`ARM, emulated, and AVX2 write the same bits in all ${here.length} buffers`);
  } finally {
    rmSync(directory, { recursive: true });
  }
}
