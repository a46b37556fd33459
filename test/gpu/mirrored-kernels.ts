import { MessageChannel, receiveMessageOnPort, type Worker } from 'node:worker_threads';
import { buffersOf, everyKernel } from '../../scripts/kernels/declarations.js';
import { hostMemory } from '../../src/tensor/host-memory.js';
import type { HostKernels } from '../../src/tensor/kernels.js';
import { startWorker } from '../../src/tensor/start-worker.js';
import type { WebgpuOptions } from '../../src/tensor/webgpu/webgpu.js';
import type { Call, Reply, ThreadData } from './device-thread.js';

/** Enough for a driver in software on a crowded machine. */
const PATIENCE_MS = 600_000;

/** The positions of the buffers that operations write which the processor's kernels share. */
const WRITTEN_BESIDE = {
  copy: [0],
  fill: [0],
  repeat: [0],
  copyBlock: [0],
  sgd: [0, 2],
  nigt: [0, 2, 3],
  valueHead: [0],
  valueHeadBackward: [0, 1],
} as const satisfies Partial<Record<keyof typeof hostMemory, readonly number[]>>;

/** The same for all, of kernels as the manifest declares them. */
const written = new Map<string, readonly number[]>([
  ...everyKernel.map((kernel) => {
    const outputs = new Set(buffersOf(kernel).filter(({ readOnly }) => !readOnly));
    return [kernel.name, kernel.parameters.flatMap((each, i) => (outputs.has(each as never) ? [i] : []))] as const;
  }),
  ...Object.entries(WRITTEN_BESIDE),
]);

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
      late = call.kernel; // its answer would be taken for that of the next call
      throw new Error(`${call.kernel} gave no answer in ${PATIENCE_MS} ms`);
    }
    const { message } = receiveMessageOnPort(port1) as { message: Reply };
    if ('problem' in message) throw new (message.range ? RangeError : Error)(message.problem);
    return message.result;
  };
  const kernels = Object.fromEntries(
    [...written].map(([name, positions]) => [
      name,
      (...values: unknown[]) =>
        ask({ kernel: name, values, written: positions.filter((i) => values[i] !== undefined) }),
    ]),
  );
  const shared = (length: number, bytes: number) => new SharedArrayBuffer(length * bytes);
  return {
    ...hostMemory,
    ...(kernels as unknown as HostKernels),
    name: 'reference', // the contract knows no fourth name, and nothing asks for it
    isa: 'wgsl',
    narrowProducts: 'widened',
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
