import { WINDOW } from './bind-groups.js';
import { CommandQueue } from './command-queue.js';
import type { DeviceKernels } from './device-kernels.js';
import { DeviceMemory } from './device-memory.js';
import { attentionKernels } from './operations/wgsl-attention.js';
import { criticKernels } from './operations/wgsl-critic.js';
import { fusedProducts } from './operations/wgsl-fused.js';
import { headKernels } from './operations/wgsl-head.js';
import { linearKernels } from './operations/wgsl-linear.js';
import { memoryKernels } from './operations/wgsl-memory.js';
import { normKernels } from './operations/wgsl-norm.js';
import { optimiserKernels } from './operations/wgsl-optimiser.js';
import { samplingKernels } from './operations/wgsl-sampling.js';
import { streamKernels } from './operations/wgsl-streams.js';
import { ScratchMemory } from './scratch-memory.js';
import type { GpuDevice } from './webgpu-api.js';

export interface WebgpuOptions {
  /** Bytes of a binding at most; matrices above it go in parts. Default: the device's own limit. */
  readonly binding?: number;
  /**
   * False where calls of few rows give other bits than calls of many, or fused operations other bits than the calls
   * that they stand for (`checkDevice`): neither is used then.
   */
  readonly shortcuts?: boolean;
}

/**
 * The kernels in WGSL, on a device of a browser or of Dawn. Needs no Node. A call encodes its work and returns; `read`
 * waits for it.
 */
export function createWebgpuKernels(device: GpuDevice, adapter: string, options: WebgpuOptions = {}): DeviceKernels {
  const queue = new CommandQueue(device);
  const scratchMemory = new ScratchMemory(queue);
  const { binding = device.limits.maxStorageBufferBindingSize, shortcuts = true } = options;
  const optimiser = optimiserKernels(queue, scratchMemory, binding);
  const memory = memoryKernels(queue, binding);
  const linear = linearKernels(queue, scratchMemory, { binding, fewRows: shortcuts, add: optimiser.add });
  const { ropeAttentionCached, ...attention } = attentionKernels(queue, scratchMemory);
  return {
    name: 'webgpu',
    adapter,
    isa: 'wgsl',
    bfloat16Products: 'widened',
    threads: 1,
    mostNumbers: (WINDOW / 4) * Math.floor(device.limits.maxBufferSize / WINDOW),
    get counts() {
      return queue.counts;
    },
    allocate: (length) => new DeviceMemory('float32', queue.allocate(length * 4), 0, length),
    allocateBfloat16: (length) => new DeviceMemory('bfloat16', queue.allocate(length * 2), 0, length),
    allocateIntegers: (length) => new DeviceMemory('int32', queue.allocate(length * 4), 0, length),
    dispose: () => queue.destroy(),
    integersIn: (floats) => floats.as('int32'),
    free: ({ buffer }) => queue.free(buffer),
    write: (to: DeviceMemory, from: Float32Array | Int32Array | Uint16Array) => queue.write(to, from),
    read: async (memories) => {
      const contents = await queue.read(memories);
      return contents.map((bytes, i) => hostArray(memories[i] as DeviceMemory, bytes)) as never;
    },
    fused: shortcuts ? { ...fusedProducts(queue, binding, { ...memory, ...linear }), ropeAttentionCached } : undefined,
    ...memory,
    ...linear,
    ...normKernels(queue),
    ...streamKernels(queue, binding),
    ...attention,
    ...headKernels(queue),
    ...samplingKernels(queue),
    ...criticKernels(queue, scratchMemory),
    ...optimiser,
  };
}

function hostArray({ kind, length }: DeviceMemory, bytes: ArrayBuffer): Float32Array | Int32Array | Uint16Array {
  if (kind === 'float32') return new Float32Array(bytes);
  return kind === 'int32' ? new Int32Array(bytes) : new Uint16Array(bytes, 0, length);
}
