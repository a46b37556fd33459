/** A GPU that fails on demand, and runs of the command line on it, in this thread. */

import { EmbeddedBackend } from '@drmas/engine/embedded';
import { nodeFiles } from '@drmas/engine/platform';
import { type FoundAdapter, findAdapter } from '@drmas/webgpu/internal/kernels/open-device';
import { openDeviceKernels } from '@drmas/webgpu/internal/kernels/open-kernels';
import type { GpuDevice } from '@drmas/webgpu/internal/kernels/webgpu-api';
import { engineHere, Gate } from '../../apps/site/src/run/engine-here.js';
import { executeRun } from '../../src/runs/run/execute/execute-run.js';
import type { RunPlace } from '../../src/runs/run/execute/start-run.js';

export interface Failing {
  /** The name of the GPU, if it is not its real one. */
  readonly name?: string;
  /** The bytes of a buffer at most. */
  readonly buffer?: number;
  /**
   * The failure after the checkpoint of a step: the GPU is removed, has no memory any more, or gets a shader
   * that does not compile.
   */
  readonly after?: { readonly step: number; readonly it: 'is lost' | 'is full' | 'refuses a shader' };
}

class GPUOutOfMemoryError extends Error {}

/** Runs on such a GPU, from the beginning or from a checkpoint. */
export function placeOn({ name, buffer, after }: Failing): Pick<RunPlace, 'executeRun'> {
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
