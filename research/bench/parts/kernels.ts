/**
 * One line for each kernel and shape: its time against the least that the machine allows. The limit is the larger of
 * its arithmetic over the multiply-add peak and its memory traffic over the bandwidth of a working set of that size.
 */
import { median } from '@drmas/engine/math';
import type { Context } from '../context.js';
import { type KernelCase, kernelCases } from '../kernel-cases.js';
import { Bandwidth, nativeKernels, peakContestant } from '../measure/peak.js';
import { processorTime, usageBetween } from '../measure/processor-time.js';

/** The duration of a repetition, which calls the kernel as often as fits. */
const SECONDS = 0.02;
/** The number of measurements of a limit; the best one counts. */
const PEAK_REPETITIONS = 5;

export async function benchKernels({ options, results, say }: Context): Promise<void> {
  for (const threads of options.threads) {
    const kernels = await nativeKernels(threads);
    let peak = 0;
    for (let i = 0; i < PEAK_REPETITIONS; i++) {
      const { amount, seconds } = await peakContestant(kernels).repeat();
      peak = Math.max(peak, amount / seconds);
    }
    const bandwidth = new Bandwidth(kernels);
    for (const shape of options.shapes) {
      say(`kernels: ${shape.name}, threads: ${threads}`);
      for (const one of kernelCases(kernels, shape)) {
        const traffic = bandwidth.at(one.bytes);
        const before = processorTime();
        const times = Array.from({ length: Math.max(3, options.repetitions) }, () => secondsOf(one));
        const { clean } = usageBetween(before, processorTime());
        const bound = one.flops / peak >= one.bytes / traffic ? 'arithmetic' : 'memory';
        results.kernels.push({
          shape: shape.name,
          kernel: one.name,
          sizes: one.sizes,
          threads,
          seconds: median(times),
          limitSeconds: Math.max(one.flops / peak, one.bytes / traffic),
          bound,
          ...(bound === 'arithmetic' ? { work: one.flops, limitRate: peak } : { work: one.bytes, limitRate: traffic }),
          clean,
        });
      }
    }
    kernels.dispose();
  }
}

/** The seconds of one call, averaged over the calls of a repetition. */
function secondsOf({ run }: KernelCase): number {
  const started = performance.now();
  let calls = 0;
  let elapsed = 0;
  while (elapsed < SECONDS) {
    run();
    calls++;
    elapsed = (performance.now() - started) / 1e3;
  }
  return elapsed / calls;
}
