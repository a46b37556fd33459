/** The limits of the machine: multiply-adds a second, and bytes a second by the size of the working set. */
import { loadNativeKernels, type NativeKernels } from '@drmas/engine/internal/tensor/native/load-kernels';
import type { Contestant } from './interleave.js';

/** The approximate duration of one measurement of the peak. */
const PEAK_SECONDS = 0.15;
const FLOATS_PER_MIB = 2 ** 18;

/** The native kernels with these threads. @throws when there are none, since the peak is measured with them */
export async function nativeKernels(threads: number): Promise<NativeKernels> {
  // The peak of the instructions that the measured engine uses.
  const isa = process.env.DRMAS_KERNELS === 'native-avx2' && process.arch === 'x64' ? { isa: 'avx2' as const } : {};
  const loaded = await loadNativeKernels({ threads, ...isa });
  if ('reason' in loaded) throw new Error(`benchmarks need the native kernels: ${loaded.reason}`);
  return loaded.kernels;
}

/** The floating-point operations a second on registers alone. */
export function peakContestant(kernels: NativeKernels): Contestant {
  return {
    name: PEAK,
    threads: kernels.threads,
    unit: 'FLOP',
    async repeat() {
      const probe = timed(() => kernels.fmaPeak({ tasks: 16 * kernels.threads }));
      const rounds = Math.max(1, Math.ceil(PEAK_SECONDS / probe.seconds));
      return timed(() => kernels.fmaPeak({ tasks: 16 * kernels.threads * rounds }));
    },
  };
}

export const PEAK = 'multiply-add peak';

function timed(work: () => number): { amount: number; seconds: number } {
  const started = performance.now();
  const amount = work();
  return { amount, seconds: (performance.now() - started) / 1e3 };
}

/**
 * The bytes a second that streaming through memory of this size reaches: the best of adding two buffers and of summing
 * squares, repeated, so that a working set that fits a cache is served by it.
 */
export class Bandwidth {
  readonly #kernels: NativeKernels;
  readonly #rates = new Map<number, number>();

  constructor(kernels: NativeKernels) {
    this.#kernels = kernels;
  }

  /** The bandwidth for a working set of `bytes`, rounded up to a power of two from 64 KiB to 256 MiB. */
  at(bytes: number): number {
    const size = 2 ** Math.min(28, Math.max(16, Math.ceil(Math.log2(bytes))));
    const earlier = this.#rates.get(size);
    if (earlier !== undefined) return earlier;
    const measured = this.#measure(size);
    this.#rates.set(size, measured);
    return measured;
  }

  #measure(bytes: number): number {
    const length = bytes / 8;
    const [a, b] = [this.#kernels.allocate(length), this.#kernels.allocate(length)];
    const rounds = Math.max(3, Math.ceil((64 * FLOATS_PER_MIB) / length / 8));
    let best = 0;
    for (let round = 0; round < rounds; round++) {
      const added = timed(() => {
        this.#kernels.add({ out: a, x: b, length });
        return 12 * length; // reads both, writes one
      });
      const summed = timed(() => {
        this.#kernels.sumOfSquares({ x: a, length });
        return 4 * length;
      });
      best = Math.max(best, added.amount / added.seconds, summed.amount / summed.seconds);
    }
    return best;
  }
}
