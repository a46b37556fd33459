import type { CommandQueue } from '../command-queue.js';
import type { DeviceKernels } from '../device-kernels.js';
import type { DeviceFloats } from '../device-memory.js';
import { alongside, CHUNK } from '../parts.js';
import type { ScratchMemory } from '../scratch-memory.js';
import { grid, numberShader, perNumber, rowShader, scratch, total } from '../shader.js';

type OptimiserKernels = Pick<DeviceKernels, 'sumOfSquares' | 'add' | 'adamw' | 'sgd' | 'nigt'>;

/** @param binding Bytes of a binding at most; longer memories go in parts. */
export function optimiserKernels(queue: CommandQueue, scratchMemory: ScratchMemory, binding: number): OptimiserKernels {
  const sumsOfChunks = (x: DeviceFloats, length: number): DeviceFloats => {
    const sums = scratchMemory.take('sums of squares', Math.ceil(length / CHUNK));
    let first = 0;
    alongside(binding, length, [x], ([part], count) => {
      const chunks = Math.ceil(count / CHUNK);
      queue.run(squares, [count], [sums.subarray(first, first + chunks), part as DeviceFloats], grid(chunks));
      first += chunks;
    });
    return sums;
  };
  return {
    sumOfSquares: async ({ x, length }) => {
      if (length === 0) return 0;
      const [bytes] = await queue.read([sumsOfChunks(x, length)]);
      return new Float32Array(bytes as ArrayBuffer).reduce((sum, value) => sum + value, 0);
    },
    add: ({ out, x, length }) =>
      alongside(binding, length, [out, x], (parts, count) => queue.run(addNumbers, [count], parts, perNumber(count))),
    sgd: ({ weights, gradient, directions, length, settings }) => {
      const { learningRate, momentum, nesterov, weightDecay, gradientScale } = settings;
      const numbers = [Number(nesterov), learningRate, momentum, weightDecay, gradientScale];
      const memories = directions === undefined ? [weights, gradient] : [weights, gradient, directions];
      const shader = directions === undefined ? sgdStep : momentumStep;
      alongside(binding, length, memories, (parts, count) =>
        queue.run(shader, [count, ...numbers], parts, perNumber(count)),
      );
    },
    nigt: ({
      weights,
      gradient,
      direction,
      ahead,
      length,
      settings: { learningRate, momentum, gradientScale, step },
    }) => {
      if (length === 0) return;
      const kept = step === 1 ? 0 : momentum;
      alongside(binding, length, [direction, gradient], (parts, count) =>
        queue.run(turnDirection, [count, kept, (1 - kept) * gradientScale], parts, perNumber(count)),
      );
      const sums = sumsOfChunks(direction, length);
      const norm = scratchMemory.take('norm of a direction', 1);
      queue.run(normOfChunks, [sums.length], [norm, sums], [1, 1]);
      const numbers = [learningRate, momentum / (1 - momentum)];
      alongside(binding, length, [weights, direction, ahead], (parts, count) =>
        queue.run(nigtStep, [count, ...numbers], [...parts, norm], perNumber(count)),
      );
    },
    adamw: ({ weights, gradient, firstMoment, secondMoment, length, settings }) => {
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
      alongside(binding, length, [weights, gradient, firstMoment, secondMoment], (parts, count) =>
        queue.run(adamwStep, [count, ...numbers], parts, perNumber(count)),
      );
    },
  };
}

const THREADS = 64;
/** The squares of a chunk, summed in float32; the host adds the sums of chunks in double precision. */
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

const descent = (name: string, memories: readonly string[], turn: string) =>
  numberShader({
    name,
    numbers: ['count', 'nesterov', 'rate!', 'momentum!', 'decay!', 'scale!'],
    memories,
    count: 'p.count',
    body: `let w = weights[e]; var change = gradient[e] * p.scale + p.decay * w; ${turn} weights[e] = w - p.rate * change;`,
  });
const sgdStep = descent('sgd', ['weights', 'gradient'], '');
const momentumStep = descent(
  'sgd with momentum',
  ['weights', 'gradient', 'directions'],
  `let d = p.momentum * directions[e] + change; directions[e] = d;
  change = select(d, change + p.momentum * d, p.nesterov == 1u);`,
);

const turnDirection = numberShader({
  name: 'nigt direction',
  numbers: ['count', 'kept!', 'share!'],
  memories: ['direction', 'gradient'],
  count: 'p.count',
  body: 'direction[e] = p.kept * direction[e] + p.share * gradient[e];',
});
const normOfChunks = rowShader({
  name: 'norm of chunks',
  numbers: ['count'],
  memories: ['norm', 'sums'],
  declare: scratch(THREADS) + total(THREADS),
  threads: `${THREADS}`,
  rows: '1u',
  body: `var s = 0.0; for (var i = t; i < p.count; i += ${THREADS}u) { s += sums[i]; }
  s = total(t, s); if (t == 0u) { norm[0] = sqrt(s); }`,
});
const nigtStep = numberShader({
  name: 'nigt',
  numbers: ['count', 'rate!', 'further!'],
  memories: ['weights', 'direction', 'ahead', 'norm'],
  count: 'p.count',
  body: `var shift = 0.0; if (norm[0] > 0.0) { shift = -p.rate / norm[0] * direction[e]; }
  weights[e] = weights[e] - ahead[e] + shift + p.further * shift; ahead[e] = p.further * shift;`,
});
