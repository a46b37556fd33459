import { RandomStream } from '../../core/random.js';
import type { Heads } from '../kernel-arguments.js';
import { referenceKernels } from '../reference/reference-kernels.js';
import type { DeviceKernels } from './device-kernels.js';
import type { DeviceFloats, DeviceIntegers } from './device-memory.js';

export interface DeviceCheck {
  /** The largest |a - b| / (1 + |b|) between the device and the plain TypeScript kernels; about 1e-6. */
  readonly gap: number;
  /**
   * Whether a row has the same bits alone and among others, cached and in a batch, sampled and scored. WGSL does not
   * promise it: a compiler may contract operations in one shader and not in another.
   */
  readonly rowsKeepBits: boolean;
}

const ROWS = 70;
const FEW = 3;
const INPUTS = 96;
const OUTPUTS = 80;
const SHAPE: Heads = { heads: 4, kvHeads: 2, headDim: 32 };
const WIDTH = (SHAPE.heads + 2 * SHAPE.kvHeads) * SHAPE.headDim;

/**
 * Computes a product, attention and log-probs on a device in every way that has to give the same bits, beside the
 * plain kernels. @throws DeviceError when the device refuses or is lost
 */
export async function checkDevice(kernels: DeviceKernels): Promise<DeviceCheck> {
  const checks = [await checkProduct(kernels), await checkAttention(kernels), await checkSampling(kernels)];
  return {
    gap: Math.max(...checks.map(({ gap }) => gap)),
    rowsKeepBits: checks.every(({ rowsKeepBits }) => rowsKeepBits),
  };
}

async function checkProduct(kernels: DeviceKernels): Promise<DeviceCheck> {
  const [x, weight] = [noise(ROWS * INPUTS, 'x'), noise(INPUTS * OUTPUTS, 'weight')];
  const expected = new Float32Array(ROWS * OUTPUTS);
  const plain = new Float32Array(referenceKernels.packedSize(INPUTS, OUTPUTS));
  referenceKernels.pack(plain, weight, INPUTS, OUTPUTS, false);
  referenceKernels.linear(expected, x, plain, ROWS, INPUTS, OUTPUTS, false);
  const packed = kernels.allocate(kernels.packedSize(INPUTS, OUTPUTS));
  kernels.pack(packed, floats(kernels, weight), INPUTS, OUTPUTS, false);
  const [all, few] = [kernels.allocate(expected.length), kernels.allocate(FEW * OUTPUTS)];
  kernels.linear(all, floats(kernels, x), packed, ROWS, INPUTS, OUTPUTS, false);
  kernels.linear(few, floats(kernels, x), packed, FEW, INPUTS, OUTPUTS, false);
  const [product, alone] = await readFloats(kernels, [all, few]);
  return { gap: gapOf(product, expected), rowsKeepBits: sameBits(alone, product) };
}

async function checkAttention(kernels: DeviceKernels): Promise<DeviceCheck> {
  const [rows, outputs] = [ROWS, ROWS * SHAPE.heads * SHAPE.headDim];
  const qkv = noise(rows * WIDTH, 'qkv');
  const starts = Int32Array.of(0, rows);
  const expected = new Float32Array(outputs);
  referenceKernels.attention(expected, new Float32Array(rows * SHAPE.heads), qkv, starts, 1, SHAPE);
  const [batch, cached] = [kernels.allocate(outputs), kernels.allocate(outputs)];
  const given = floats(kernels, qkv);
  kernels.attention(batch, kernels.allocate(rows * SHAPE.heads), given, integers(kernels, starts), 1, SHAPE);
  const slot = kernels.cacheSlotSize(rows, SHAPE);
  const [keys, values] = [kernels.allocate(slot), kernels.allocate(slot)];
  const positions = integers(
    kernels,
    Int32Array.from({ length: rows }, (_, row) => row),
  );
  const slots = integers(kernels, new Int32Array(rows));
  kernels.attentionCached(cached, keys, values, given, slots, positions, rows, rows, SHAPE);
  const [inBatch, inCache] = await readFloats(kernels, [batch, cached]);
  return { gap: gapOf(inBatch, expected), rowsKeepBits: sameBits(inCache, inBatch) };
}

async function checkSampling(kernels: DeviceKernels): Promise<DeviceCheck> {
  const logits = noise(ROWS * OUTPUTS, 'logits');
  const temperatures = new Float32Array(ROWS).fill(0.8);
  const given = floats(kernels, logits);
  const inverse = floats(kernels, temperatures);
  const tokens = kernels.allocateIntegers(ROWS);
  const [sampled, scored, sums, entropy] = Array.from({ length: 4 }, () => kernels.allocate(ROWS)) as [
    DeviceFloats,
    DeviceFloats,
    DeviceFloats,
    DeviceFloats,
  ];
  const [topK, topP] = [integers(kernels, new Int32Array(ROWS)), floats(kernels, new Float32Array(ROWS).fill(1))];
  const uniforms = floats(kernels, noise(ROWS, 'uniforms').map(Math.abs));
  kernels.sampleTokens(tokens, sampled, given, uniforms, inverse, topK, topP, ROWS, OUTPUTS);
  kernels.tokenLogprobs(scored, sums, entropy, given, tokens, inverse, ROWS, OUTPUTS);
  const [drawn] = await kernels.read([tokens]);
  const [bySampler, byTrainer] = await readFloats(kernels, [sampled, scored]);
  const expected = new Float32Array(ROWS);
  const targets = new Int32Array(drawn as ArrayBuffer);
  const unused = () => new Float32Array(ROWS);
  referenceKernels.tokenLogprobs(expected, unused(), unused(), logits, targets, temperatures, ROWS, OUTPUTS);
  return { gap: gapOf(byTrainer, expected), rowsKeepBits: sameBits(bySampler, byTrainer) };
}

function noise(length: number, key: string): Float32Array {
  const stream = new RandomStream('check of a device', key);
  return Float32Array.from({ length }, () => stream.word() / 2 ** 31 - 1);
}

function floats(kernels: DeviceKernels, values: Float32Array): DeviceFloats {
  const memory = kernels.allocate(values.length);
  kernels.write(memory, values);
  return memory;
}

function integers(kernels: DeviceKernels, values: Int32Array): DeviceIntegers {
  const memory = kernels.allocateIntegers(values.length);
  kernels.write(memory, values);
  return memory;
}

async function readFloats(
  kernels: DeviceKernels,
  memories: readonly [DeviceFloats, DeviceFloats],
): Promise<[Float32Array, Float32Array]> {
  const [first, second] = await kernels.read(memories);
  return [new Float32Array(first as ArrayBuffer), new Float32Array(second as ArrayBuffer)];
}

/** Not a number where one of the values is none. */
const gapOf = (values: Float32Array, expected: Float32Array) =>
  values.reduce((gap, value, i) => {
    const right = expected[i] as number;
    return Math.max(gap, Math.abs(value - right) / (1 + Math.abs(right)));
  }, 0);

/** Whether the first numbers of `longer` have the bits of `values`. */
const sameBits = (values: Float32Array, longer: Float32Array) =>
  values.every((value, i) => Object.is(value, longer[i]));
