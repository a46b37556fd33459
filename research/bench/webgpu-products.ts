/**
 * The speed of products on this machine's GPU, at the sizes of Qwen2.5-0.5B:
 * `npx tsx research/bench/webgpu-products.ts`. One line a product: the best of some rounds. Each round waits for the
 * GPU once.
 */
import { messageOf } from '@drmas/engine/errors';
import { toBfloat16 } from '@drmas/engine/internal/tensor/bfloat16';
import { RandomStream } from '@drmas/engine/math';
import type { DeviceKernels } from '@drmas/webgpu/internal/kernels/device-kernels';
import type { DeviceBfloat16s, DeviceFloats } from '@drmas/webgpu/internal/kernels/device-memory';
import { openDeviceKernels } from '@drmas/webgpu/internal/kernels/open-kernels';
import { amount } from './report.js';

/** Rows of a small tick, of a usual one and of a micro-batch, by a layer's narrowest and its widest matrix. */
const SIZES = [8, 32, 1024].flatMap((rows) => [
  { rows, inputs: 896, outputs: 896 },
  { rows, inputs: 896, outputs: 9728 },
]);
type Size = (typeof SIZES)[number];
const ROUNDS = 5;
/** Seconds of a round, and the most that a single product may take. */
const ROUND = 0.2;
const MOST = 4;

const random = new RandomStream('products on a GPU');
const noise = (length: number) => Float32Array.from({ length }, () => random.word() / 2 ** 31 - 1);

/** Products of one size: how one is encoded, and the memory to read to wait for it. */
function productsOf(kernels: DeviceKernels, { rows, inputs, outputs }: Size) {
  const [x, out] = [kernels.allocate(rows * inputs), kernels.allocate(rows * outputs)];
  const [weight, coarse] = [kernels.allocate(inputs * outputs), kernels.allocateBfloat16(inputs * outputs)];
  const values = noise(inputs * outputs);
  kernels.write(x, noise(rows * inputs));
  kernels.write(out, noise(rows * outputs));
  kernels.write(weight, values);
  kernels.write(coarse, toBfloat16(values));
  const linear = (matrix: DeviceFloats | DeviceBfloat16s) => {
    const factor = kernels.stored({ weight: matrix, inputs, outputs, transpose: false });
    return () => {
      kernels.linear({ out, x, packed: factor, rows, inputs, outputs, accumulate: false });
      return out;
    };
  };
  const gradient = () => {
    kernels.linearWeightGradient({ dWeight: weight, x, dOut: out, rows, inputs, outputs });
    return weight;
  };
  const ways = { float32: linear(weight), bfloat16: linear(coarse), 'gradient of the weights': gradient };
  return { ways, memories: [x, out, weight, coarse] };
}

/** The seconds of a number of products and one wait. */
async function timed(kernels: DeviceKernels, once: () => DeviceFloats, count: number): Promise<number> {
  const begin = performance.now();
  let last = once();
  for (let i = 1; i < count; i++) last = once();
  await kernels.read([last.subarray(0, 1)]);
  return (performance.now() - begin) / 1e3;
}

async function main(): Promise<void> {
  const kernels = await openDeviceKernels();
  process.stdout.write(`${kernels.adapter}\n`);
  let slowest = Number.POSITIVE_INFINITY;
  for (const size of SIZES) {
    const { rows, inputs, outputs } = size;
    const operations = 2 * rows * inputs * outputs;
    if (operations / slowest > MOST) {
      process.stdout.write(`${rows} x ${inputs} x ${outputs}: left out, more than ${MOST} s each\n`);
      continue;
    }
    const { ways, memories } = productsOf(kernels, size);
    for (const [way, once] of Object.entries(ways)) {
      await timed(kernels, once, 1); // compiles
      const count = Math.max(1, Math.ceil(ROUND / (await timed(kernels, once, 1))));
      let best = Number.POSITIVE_INFINITY;
      for (let round = 0; round < ROUNDS; round++) best = Math.min(best, (await timed(kernels, once, count)) / count);
      slowest = Math.min(slowest, operations / best);
      process.stdout.write(`${rows} x ${inputs} x ${outputs}, ${way}: ${amount(operations / best)}FLOP/s\n`);
    }
    for (const memory of memories) kernels.free(memory);
  }
  kernels.dispose();
}

await main().catch((error: unknown) => {
  process.stderr.write(`${messageOf(error)}\n`);
  process.exitCode = 1;
});
