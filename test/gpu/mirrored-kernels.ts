import { MessageChannel, receiveMessageOnPort, type Worker } from 'node:worker_threads';
import { hostMemory } from '@drmas/engine/internal/tensor/host-kernels';
import type { HostKernels } from '@drmas/engine/kernels';
import { startWorker } from '@drmas/engine/platform';
import type { WebgpuOptions } from '@drmas/webgpu/internal/kernels/webgpu';
import { allKernels } from '../../scripts/kernels/declarations.js';
import type { Call, Reply, ThreadData } from './device-thread.js';

/** Enough for a driver in software on a crowded machine. */
const PATIENCE_MS = 600_000;

/** The names of the buffers that each kernel writes. */
const written = new Map(
  allKernels
    .filter(({ only }) => only === undefined || only === 'host')
    .map(({ name, parameters }) => {
      const buffers = parameters.filter((each) => each.kind === 'buffer' && !each.readOnly);
      return [name, buffers.map((each) => each.name)] as const;
    }),
);

/**
 * A GPU's kernels as `HostKernels` in this process's memory, so that what holds for those can be asked of them: each
 * call writes its arguments to the device, waits and reads back. A thread of its own has the device, because reading
 * from one is asynchronous and `HostKernels` are not. For tests; it is slow.
 */
export function mirroredKernels(options: WebgpuOptions = {}): HostKernels {
  const { port1, port2 } = new MessageChannel();
  const done = new Int32Array(new SharedArrayBuffer(4));
  const data: ThreadData = { port: port2, done, options };
  const thread: Worker = startWorker('device-thread', import.meta.url, data, { transferList: [port2] });
  thread.unref();
  let late: string | undefined;
  const ask = (call: Call): unknown => {
    if (late !== undefined) throw new Error(`${late} was given up before`);
    Atomics.store(done, 0, 0);
    port1.postMessage(call);
    if (Atomics.wait(done, 0, 0, PATIENCE_MS) === 'timed-out') {
      late = call.kernel; // its result would be taken for the result of the next call
      throw new Error(`${call.kernel} gave no answer in ${PATIENCE_MS} ms`);
    }
    const { message } = receiveMessageOnPort(port1) as { message: Reply };
    if ('problem' in message) throw new (message.range ? RangeError : Error)(message.problem);
    return message.result;
  };
  const kernels = Object.fromEntries(
    [...written].map(([kernel, names]) => [
      kernel,
      (given: Readonly<Record<string, unknown>>) =>
        ask({ kernel, given, written: names.filter((name) => given[name] !== undefined) }),
    ]),
  );
  const shared = (length: number, bytes: number) => new SharedArrayBuffer(length * bytes);
  return {
    ...hostMemory,
    ...(kernels as unknown as HostKernels),
    name: 'reference', // the contract knows no fourth name, and nothing asks for it
    isa: 'wgsl',
    bfloat16Products: 'widened',
    threads: 1,
    allocate: (length) => new Float32Array(shared(length, 4)),
    allocateBfloat16: (length) => new Uint16Array(shared(length, 2)),
    allocateIntegers: (length) => new Int32Array(shared(length, 4)),
    dispose: () => {
      port1.close();
      void thread.terminate();
    },
  };
}
