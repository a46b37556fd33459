/** A GPU that fails when it is told to, and runs that the command line makes on it, in this thread. */
import { engineHere, Gate } from '../../site/src/run/engine-here.js';
import { EmbeddedBackend } from '../../src/backends/embedded/embedded-backend.js';
import type { Work } from '../../src/cli/wiring.js';
import { nodeFiles } from '../../src/platform/node-files.js';
import { executeRun } from '../../src/run/execute-run.js';
import { type FoundAdapter, findAdapter } from '../../src/tensor/webgpu/open-device.js';
import { openDeviceKernels } from '../../src/tensor/webgpu/open-kernels.js';
import type { GpuDevice } from '../../src/tensor/webgpu/webgpu-api.js';

export interface Failing {
  /** What the GPU is called, where not as it is. */
  readonly name?: string;
  /** The bytes of a buffer at most. */
  readonly buffer?: number;
  /**
   * What happens when the checkpoint of a step is written: the GPU is taken away, has no memory any more, or is given a
   * shader that does not compile.
   */
  readonly after?: { readonly step: number; readonly it: 'is lost' | 'is full' | 'refuses a shader' };
}

class GPUOutOfMemoryError extends Error {}

/** Runs on such a GPU, from the beginning or from a checkpoint. */
export function workOn({ name, buffer, after }: Failing): Pick<Work, 'executeRun'> {
  let device: GpuDevice | undefined;
  let isFull = false;
  const createBuffer: GpuDevice['createBuffer'] = (wanted) => {
    if (isFull) device?.onuncapturederror?.({ error: new GPUOutOfMemoryError(`no ${wanted.size} bytes are left`) });
    return (device as GpuDevice).createBuffer(wanted);
  };
  const find = async (): Promise<FoundAdapter> => {
    const adapter = await findAdapter();
    const open = async () => {
      device = await adapter.open();
      const { maxStorageBufferBindingSize, maxBufferSize } = device.limits;
      const limits = { maxStorageBufferBindingSize, maxBufferSize: buffer ?? maxBufferSize };
      return changed(device, { limits, createBuffer });
    };
    return { ...adapter, name: name ?? adapter.name, open };
  };
  const openBackend = async () => new EmbeddedBackend(engineHere(await openDeviceKernels(find), new Gate()), nodeFiles);
  return {
    async executeRun(recipe, log, host, begun) {
      const write = log.writeCheckpoint.bind(log);
      log.writeCheckpoint = async (step, fill) => {
        const written = await write(step, fill);
        if (step !== after?.step) return written;
        if (after.it === 'is lost') device?.destroy();
        else if (after.it === 'is full') isFull = true;
        else device?.createShaderModule({ label: 'wrong', code: 'fn main( {' });
        return written;
      };
      await executeRun(recipe, log, host, { ...begun, openBackend });
    },
  };
}

/** An object of Dawn's, whose methods want it as it is, with some properties changed. */
const changed = (device: GpuDevice, changes: Partial<GpuDevice>): GpuDevice =>
  new Proxy(device, {
    get(target, key) {
      if (key in changes) return Reflect.get(changes, key);
      const value: unknown = Reflect.get(target, key, target);
      return typeof value === 'function' ? value.bind(target) : value;
    },
    set: (target, key, value) => Reflect.set(target, key, value, target),
  });
