import type { HostMemoryKinds } from './kernel-arguments.js';
import type { KernelMemory } from './kernel-memory.js';
import type { HostOperations } from './kernel-operations.js';

/**
 * The kernels without C++: all sets of kernels on the processor share them, with the same bits. Every number is
 * computed in double precision and rounded once.
 */
export const hostKernels: HostOperations<HostMemoryKinds> = {
  copy: ({ to, from }) => to.set(from),
  fill: ({ x, value }) => void x.fill(value),
  repeat: ({ out, row, rows }) => {
    const length = rows * row.length;
    if (length > 0) out.set(row);
    for (let filled = row.length; filled < length; filled *= 2)
      out.copyWithin(filled, 0, Math.min(filled, length - filled));
  },
  copyBlock: ({ to, toStride, from, fromStride, rows, columns, scale, accumulate }) => {
    for (let r = 0; r < rows; r++) {
      let [t, f] = [r * toStride, r * fromStride];
      const end = t + columns;
      if (accumulate) for (; t < end; t++, f++) to[t] = (to[t] as number) + scale * (from[f] as number);
      else for (; t < end; t++, f++) to[t] = scale * (from[f] as number);
    }
  },
  sgd: ({ weights, gradient, directions, length, settings }) => {
    const { learningRate, momentum, nesterov, weightDecay, gradientScale } = settings;
    for (let i = 0; i < length; i++) {
      const weight = weights[i] as number;
      let change = (gradient[i] as number) * gradientScale + weightDecay * weight;
      if (directions !== undefined) {
        const direction = momentum * (directions[i] as number) + change;
        directions[i] = direction;
        change = nesterov ? change + momentum * direction : direction;
      }
      weights[i] = weight - learningRate * change;
    }
  },
  nigt: ({
    weights,
    gradient,
    direction,
    ahead,
    length,
    settings: { learningRate, momentum, gradientScale, step },
  }) => {
    const kept = step === 1 ? 0 : momentum;
    let squares = 0;
    for (let i = 0; i < length; i++) {
      direction[i] = kept * (direction[i] as number) + (1 - kept) * gradientScale * (gradient[i] as number);
      squares += (direction[i] as number) ** 2;
    }
    const along = squares > 0 ? -learningRate / Math.sqrt(squares) : 0;
    const further = momentum / (1 - momentum);
    for (let i = 0; i < length; i++) {
      const move = along * (direction[i] as number);
      const iterate = (weights[i] as number) - (ahead[i] as number) + move;
      weights[i] = iterate + further * move;
      ahead[i] = further * move;
    }
  },
  valueHead: ({ values, hidden, head, rows, width }) => {
    for (let r = 0, at = 0; r < rows; r++) {
      let value = head[width] as number;
      for (let i = 0; i < width; i++, at++) value += (hidden[at] as number) * (head[i] as number);
      values[r] = value;
    }
  },
  valueHeadBackward: ({ dHidden, dHead, slopes, hidden, head, rows, width }) => {
    for (let r = 0, at = 0; r < rows; r++) {
      const slope = slopes[r] as number;
      for (let i = 0; i < width; i++, at++) {
        dHidden[at] = slope * (head[i] as number);
        dHead[i] = (dHead[i] as number) + slope * (hidden[at] as number);
      }
      dHead[width] = (dHead[width] as number) + slope;
    }
  },
};

type HostArray = Float32Array | Int32Array | Uint16Array;

/** The memory of all kernels on the processor: this process's own. Allocation differs. */
export const hostMemory: Omit<KernelMemory<HostMemoryKinds>, 'allocate' | 'allocateBfloat16' | 'allocateIntegers'> = {
  integersIn: ({ buffer, byteOffset, length }) => new Int32Array(buffer, byteOffset, length),
  free: () => {},
  write: (to: HostArray, from: HostArray) => to.set(from),
  read: (memories) => Promise.resolve(memories.map((memory) => memory.slice()) as never),
  stored: () => undefined,
};
