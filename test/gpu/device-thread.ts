/**
 * A thread that has the kernels of a GPU and carries out calls on memory of the thread that asks: what a call reads is
 * written to the device before, its output is read back afterwards.
 */
import { type MessagePort, workerData } from 'node:worker_threads';
import { messageOf } from '@drmas/engine/errors';
import type { DeviceKernels } from '@drmas/webgpu/internal/kernels/device-kernels';
import type { DeviceFloats, DeviceMemory } from '@drmas/webgpu/internal/kernels/device-memory';
import { findAdapter } from '@drmas/webgpu/internal/kernels/open-device';
import { createWebgpuKernels, type WebgpuOptions } from '@drmas/webgpu/internal/kernels/webgpu';

/** The input of the thread. */
export interface ThreadData {
  readonly port: MessagePort;
  /** [done]: set to 1 when a call is over. */
  readonly done: Int32Array;
  readonly options: WebgpuOptions;
}

export type HostArray = Float32Array | Int32Array | Uint16Array;

/** A kernel with its arguments; `written` are the names of the buffers that it writes. */
export interface Call {
  readonly kernel: string;
  readonly given: Readonly<Record<string, unknown>>;
  readonly written: readonly string[];
}

export type Reply = { readonly result: unknown } | { readonly problem: string; readonly range: boolean };

type Kernel = (given: Readonly<Record<string, unknown>>) => unknown;

const { port, done, options } = workerData as ThreadData;
const adapter = await findAdapter();
const kernels = createWebgpuKernels(await adapter.open(), adapter.name, options);
const free: DeviceMemory[] = [];

port.on('message', async (call: Call) => {
  port.postMessage(await carryOut(call).catch(refusal));
  Atomics.store(done, 0, 1);
  Atomics.notify(done, 0);
});

const refusal = (error: unknown): Reply => ({ problem: messageOf(error), range: error instanceof RangeError });

async function carryOut({ kernel, given, written }: Call): Promise<Reply> {
  const used: DeviceMemory[] = [];
  const onDevice = (value: unknown) => {
    if (!isArray(value)) return value;
    const memory = memoryFor(kernels, value);
    used.push(memory);
    const part = memory.subarray(0, value.length);
    if (value instanceof Float32Array) kernels.write(part as DeviceMemory<'float32'>, value);
    else if (value instanceof Int32Array) kernels.write(part as DeviceMemory<'int32'>, value);
    else kernels.write(part as DeviceMemory<'bfloat16'>, value);
    return part;
  };
  const values = Object.fromEntries(Object.entries(given).map(([name, value]) => [name, onDevice(value)]));
  const result = await (kernels[kernel as keyof DeviceKernels] as unknown as Kernel)(values);
  const contents: readonly HostArray[] = await kernels.read(written.map((name) => values[name] as DeviceFloats));
  written.forEach((name, n) => {
    (given[name] as HostArray).set(contents[n] as HostArray);
  });
  free.push(...used);
  return { result };
}

const isArray = (value: unknown): value is HostArray =>
  value instanceof Float32Array || value instanceof Int32Array || value instanceof Uint16Array;

/** Memory that an earlier call has used, if it is large enough: a new buffer has no bind group yet. */
function memoryFor(kernels: DeviceKernels, array: HostArray): DeviceMemory {
  const kind = array instanceof Float32Array ? 'float32' : array instanceof Int32Array ? 'int32' : 'bfloat16';
  const capacity = 2 ** Math.ceil(Math.log2(Math.max(64, array.length)));
  const at = free.findIndex((memory) => memory.kind === kind && memory.length === capacity);
  if (at >= 0) return free.splice(at, 1)[0] as DeviceMemory;
  if (kind === 'float32') return kernels.allocate(capacity);
  return kind === 'int32' ? kernels.allocateIntegers(capacity) : kernels.allocateBfloat16(capacity);
}
