import type { CommandQueue } from '../command-queue.js';
import type { DeviceKernels } from '../device-kernels.js';
import { type DeviceFloats, DeviceMemory } from '../device-memory.js';
import { inParts } from '../parts.js';
import { grid, numberShader, perNumber, rowShader, scratch, total } from '../shader.js';

type OptimiserKernels = Pick<DeviceKernels, 'sumOfSquares' | 'add' | 'adamw'>;

/** @param binding Bytes of a binding at most; longer memories go in parts. */
export function optimiserKernels(queue: CommandQueue, binding: number): OptimiserKernels {
  /** Calls `part` with what fits a binding of each memory, whole chunks until the last one. */
  const together = (length: number, memories: readonly DeviceFloats[], part: (parts: DeviceFloats[]) => void) =>
    inParts(binding, { rows: Math.ceil(length / CHUNK), width: CHUNK, bytesPerNumber: 4 }, (first, count) => {
      const end = Math.min((first + count) * CHUNK, length);
      part(memories.map((memory) => memory.subarray(first * CHUNK, end)));
    });
  let sums: DeviceFloats | undefined;
  return {
    sumOfSquares: async (x, length) => {
      const chunks = Math.ceil(length / CHUNK);
      if (sums === undefined || sums.length < chunks) {
        sums?.buffer.destroy();
        sums = new DeviceMemory('float32', queue.allocate(chunks * 4), 0, chunks);
      }
      const all = sums.subarray(0, chunks);
      let chunk = 0;
      together(length, [x], ([part]) => {
        const count = (part as DeviceFloats).length;
        const parts = Math.ceil(count / CHUNK);
        queue.run(squares, [count], [all.subarray(chunk, chunk + parts), part as DeviceFloats], grid(parts));
        chunk += parts;
      });
      const [bytes] = await queue.read([all]);
      return new Float32Array(bytes as ArrayBuffer).reduce((sum, value) => sum + value, 0);
    },
    add: (out, x, length) =>
      together(length, [out, x], (parts) => {
        const count = (parts[0] as DeviceFloats).length;
        queue.run(addNumbers, [count], parts, perNumber(count));
      }),
    adamw: (weights, gradient, firstMoment, secondMoment, length, settings) => {
      const { learningRate, beta1, beta2, epsilon, weightDecay, step, gradientScale } = settings;
      const numbers = [
        learningRate,
        beta1,
        beta2,
        1 - beta1,
        1 - beta2,
        epsilon,
        1 - learningRate * weightDecay,
        1 - beta1 ** step,
        1 - beta2 ** step,
        gradientScale,
      ];
      together(length, [weights, gradient, firstMoment, secondMoment], (parts) => {
        const count = (parts[0] as DeviceFloats).length;
        queue.run(adamwStep, [count, ...numbers], parts, perNumber(count));
      });
    },
  };
}

/** Numbers whose squares a group sums in float32; the host adds what the chunks come to in double precision. */
const CHUNK = 1024;
const THREADS = 64;
const squares = rowShader({
  name: 'sum of squares',
  numbers: ['count'],
  memories: ['out', 'x'],
  declare: scratch(THREADS) + total(THREADS),
  threads: `${THREADS}`,
  rows: `(p.count + ${CHUNK - 1}u) / ${CHUNK}u`,
  body: `var s = 0.0;
  for (var i = r * ${CHUNK}u + t; i < min((r + 1u) * ${CHUNK}u, p.count); i += ${THREADS}u) { s = fma(x[i], x[i], s); }
  s = total(t, s); if (t == 0u) { out[r] = s; }`,
});
const addNumbers = numberShader({
  name: 'add',
  numbers: ['count'],
  memories: ['out', 'x'],
  count: 'p.count',
  body: 'out[e] = out[e] + x[e];',
});
const adamwStep = numberShader({
  name: 'adamw',
  numbers: [
    'count',
    'rate!',
    'beta1!',
    'beta2!',
    'share1!',
    'share2!',
    'epsilon!',
    'keep!',
    'correction1!',
    'correction2!',
    'scale!',
  ],
  memories: ['weights', 'gradient', 'first', 'second'],
  count: 'p.count',
  body: `let d = gradient[e] * p.scale;
  let m = p.beta1 * first[e] + p.share1 * d; let v = p.beta2 * second[e] + p.share2 * d * d;
  first[e] = m; second[e] = v;
  let change = m / p.correction1 / (sqrt(v / p.correction2) + p.epsilon);
  weights[e] = weights[e] * p.keep - p.rate * change;`,
});
