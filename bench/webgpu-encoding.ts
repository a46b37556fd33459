/**
 * What JavaScript and Dawn take to encode a decoding tick and a micro-batch on a GPU, on a backend of Dawn's that
 * executes nothing: `npx tsx bench/webgpu-encoding.ts`. The calls are those of the decoder, recorded on the plain
 * kernels with narrow matrices; what a call takes to encode does not depend on how wide they are.
 */
import { type DecoderConfig, PROJECTIONS } from '../src/contract/architecture.js';
import { randomKey } from '../src/core/random.js';
import { PolicyModel } from '../src/model/decoder/policy-model.js';
import { Sampler } from '../src/model/decoder/sampling/decoder-sampler.js';
import { DecoderWeights } from '../src/model/decoder/weights/model-weights.js';
import type { WeightArray } from '../src/tensor/kernel-arguments.js';
import type { HostKernels } from '../src/tensor/kernels.js';
import { createReferenceKernels } from '../src/tensor/reference/reference.js';
import type { DeviceKernels } from '../src/tensor/webgpu/device-kernels.js';
import type { DeviceMemory } from '../src/tensor/webgpu/device-memory.js';
import { findAdapter } from '../src/tensor/webgpu/open-device.js';
import { createWebgpuKernels } from '../src/tensor/webgpu/webgpu.js';

/** Layers, heads and biases of Qwen2.5-0.5B. */
const config: DecoderConfig = {
  vocabSize: 128,
  width: 32,
  layers: 24,
  heads: 14,
  kvHeads: 2,
  headDim: 4,
  feedForward: 32,
  context: 512,
  ropeBase: 1e6,
  normEpsilon: 1e-6,
  attentionBias: 'qkv',
};
const adapter = { rank: 4, alpha: 8, targets: PROJECTIONS };
const REQUESTS = 32;
const SEQUENCES = 4;
const LENGTH = 257;
const REPETITIONS = 60;
const WARM = 10;

type HostArray = WeightArray | Int32Array;
interface Call {
  readonly kernel: string;
  readonly values: readonly unknown[];
}

const isArray = (value: unknown): value is HostArray =>
  value instanceof Float32Array || value instanceof Int32Array || value instanceof Uint16Array;

/** The plain kernels, and the calls that were made since the last `take`. */
function recorded(): { readonly kernels: HostKernels; take(): Call[] } {
  const plain = createReferenceKernels();
  let calls: Call[] = [];
  const kernels = new Proxy(plain, {
    get: (target, name: keyof HostKernels) => {
      const member = target[name];
      if (typeof member !== 'function' || /^allocate|^dispose$|Size$/.test(name)) return member;
      return (...values: unknown[]) => {
        calls.push({ kernel: name, values });
        return (member as (...values: unknown[]) => unknown)(...values);
      };
    },
  });
  return {
    kernels,
    take: () => {
      const taken = calls;
      calls = [];
      return taken;
    },
  };
}

/** The calls with a memory of the device in the place of each array. */
function onDevice(device: DeviceKernels, calls: readonly Call[]): (() => unknown)[] {
  const numbers = new Map<ArrayBufferLike, number>();
  const keyOf = (array: HostArray) => {
    if (!numbers.has(array.buffer)) numbers.set(array.buffer, numbers.size);
    return `${array.constructor.name} ${numbers.get(array.buffer)} ${array.byteOffset}`;
  };
  const lengths = new Map<string, number>();
  for (const { values } of calls)
    for (const value of values.filter(isArray))
      lengths.set(keyOf(value), Math.max(lengths.get(keyOf(value)) ?? 1, value.length));
  const memories = new Map<string, DeviceMemory>();
  const memoryOf = (array: HostArray): DeviceMemory => {
    const key = keyOf(array);
    const length = lengths.get(key) ?? 1;
    const memory = memories.get(key) ?? allocate(device, array, length);
    memories.set(key, memory);
    return memory.subarray(0, array.length);
  };
  return calls.map(({ kernel, values }) => {
    const given = values.map((value) => (isArray(value) ? memoryOf(value) : value));
    const run = device[kernel as keyof DeviceKernels] as (...values: unknown[]) => unknown;
    return () => run(...given);
  });
}

function allocate(device: DeviceKernels, array: HostArray, length: number): DeviceMemory {
  if (array instanceof Float32Array) return device.allocate(length);
  return array instanceof Int32Array ? device.allocateIntegers(length) : device.allocateBfloat16(length);
}

/** Encodes the calls many times; `before` and `after` are what the host does around them. */
async function measure(
  what: string,
  device: DeviceKernels,
  calls: readonly Call[],
  { writes, reads }: { readonly writes: number; readonly reads: number },
): Promise<void> {
  const runs = onDevice(device, calls);
  const rows = device.allocate(1024);
  const numbers = new Float32Array(REQUESTS);
  const once = async () => {
    for (let i = 0; i < writes; i++) device.write(rows, numbers);
    await Promise.all(runs.map((run) => run()));
    await device.read(Array.from({ length: reads }, () => rows.subarray(0, REQUESTS)));
  };
  const first = device.counts;
  await once();
  const fresh = device.counts;
  for (let i = 0; i < WARM; i++) await once();
  const warm = device.counts;
  const wall: number[] = [];
  const started = process.cpuUsage();
  for (let i = 0; i < REPETITIONS; i++) {
    const begin = performance.now();
    await once();
    wall.push(performance.now() - begin);
  }
  const { user, system } = process.cpuUsage(started);
  const { dispatches, submits, bindGroups } = device.counts;
  const ordered = wall.toSorted((a, b) => a - b);
  const line = {
    what,
    dispatches: (dispatches - warm.dispatches) / REPETITIONS,
    submits: (submits - warm.submits) / REPETITIONS,
    bindGroupsOfTheFirst: fresh.bindGroups - first.bindGroups,
    bindGroupsLater: bindGroups - warm.bindGroups,
    processorMs: round((user + system) / 1e3 / REPETITIONS),
    bestMs: round(ordered[0] as number),
    medianMs: round(ordered[REPETITIONS / 2] as number),
  };
  process.stdout.write(`${JSON.stringify(line)}\n`);
}

const round = (ms: number) => Math.round(ms * 100) / 100;

const { kernels, take } = recorded();
const base = new DecoderWeights(kernels, config);
const model = new PolicyModel(kernels, { base, adapter }, { recompute: true });
model.initialise(1);
const sampler = new Sampler(kernels, base);
sampler.load('policy', model.trained, 1, adapter);
for (let id = 0; id < REQUESTS; id++)
  sampler.submit({
    ...{ id, policy: 'policy', prompt: [1, 2, 3, 4], maxTokens: 8, temperature: 1, topK: 0, topP: 1 },
    ...{ stopTokens: [], key: randomKey('draw', id) },
  });
sampler.step();
sampler.step();
take();
sampler.step();
const tick = take();
const sequences = Array.from({ length: SEQUENCES }, () => ({
  tokens: new Int32Array(LENGTH).fill(3),
  mask: Uint8Array.from({ length: LENGTH }, (_, t) => (t > 0 ? 1 : 0)),
  temperature: 1,
}));
const upstream = (indices: readonly number[]) => indices.map(() => new Float32Array(LENGTH).fill(0.01));
model.accumulate(sequences, upstream);
model.discardGradient();
take();
model.accumulate(sequences, upstream);
const microBatch = take();

const found = await findAdapter('null');
const device = createWebgpuKernels(await found.open(), found.name);
// Tokens, slots, positions and four settings of each draw; tokens and log-probs.
await measure(`decoding tick, ${REQUESTS} requests`, device, tick, { writes: 7, reads: 2 });
// Tokens, positions, starts, targets, temperatures, gradients of log-probs; log-probs and entropies.
await measure(`micro-batch, ${SEQUENCES * (LENGTH - 1)} rows`, device, microBatch, { writes: 6, reads: 2 });
device.dispose();
