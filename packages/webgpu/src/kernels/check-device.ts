import { createReferenceKernels, type Heads, linearOntoByCalls } from '@drmas/engine/kernels';
import { RandomStream } from '@drmas/engine/math';
import type { DeviceKernels } from './device-kernels.js';
import type { DeviceFloats, DeviceIntegers } from './device-memory.js';

const plainKernels = createReferenceKernels();

export interface DeviceCheck {
  /** The largest |a - b| / (1 + |b|) between the device and the plain TypeScript kernels; about 1e-6. */
  readonly gap: number;
  /**
   * Whether a row has the same bits alone and among others, cached and in a batch, sampled and scored, by fused
   * operations and by calls. WGSL does not promise it: a compiler may contract operations in one shader and not in
   * another.
   */
  readonly rowsKeepBits: boolean;
}

const ROWS = 70;
/** Numbers of rows of products; each has its own tile. */
const FEW = [3, 20];
const INPUTS = 96;
const OUTPUTS = 80;
const RANK = 24;
const SHAPE: Heads = { heads: 4, kvHeads: 2, headDim: 32 };
const WIDTH = (SHAPE.heads + 2 * SHAPE.kvHeads) * SHAPE.headDim;

/**
 * Computes a product, attention and log-probs on a device in every way that has to give the same bits, beside the
 * plain kernels. @throws DeviceError when the device refuses or is lost
 */
export async function checkDevice(kernels: DeviceKernels): Promise<DeviceCheck> {
  const bench = new Bench(kernels);
  const checks = [
    await checkProduct(kernels, bench),
    await checkFused(kernels, bench),
    await checkAttention(kernels, bench),
    await checkSampling(kernels, bench),
  ];
  bench.clear();
  return {
    gap: Math.max(...checks.map(({ gap }) => gap)),
    rowsKeepBits: checks.every(({ rowsKeepBits }) => rowsKeepBits),
  };
}

/** Memory on the device that is given back in the end. */
class Bench {
  readonly #kernels: DeviceKernels;
  readonly #taken: (DeviceFloats | DeviceIntegers)[] = [];

  constructor(kernels: DeviceKernels) {
    this.#kernels = kernels;
  }

  floats(values: Float32Array): DeviceFloats {
    const memory = this.zeros(values.length);
    this.#kernels.write(memory, values);
    return memory;
  }

  integers(values: Int32Array): DeviceIntegers {
    const memory = this.#kernels.allocateIntegers(values.length);
    this.#taken.push(memory);
    this.#kernels.write(memory, values);
    return memory;
  }

  zeros(length: number): DeviceFloats {
    const memory = this.#kernels.allocate(length);
    this.#taken.push(memory);
    return memory;
  }

  clear(): void {
    for (const memory of this.#taken) this.#kernels.free(memory);
  }
}

async function checkProduct(kernels: DeviceKernels, bench: Bench): Promise<DeviceCheck> {
  const [x, weight] = [noise(ROWS * INPUTS, 'x'), noise(INPUTS * OUTPUTS, 'weight')];
  const expected = new Float32Array(ROWS * OUTPUTS);
  const plain = new Float32Array(plainKernels.packedSize({ inputs: INPUTS, outputs: OUTPUTS }));
  plainKernels.pack({ packed: plain, weight, inputs: INPUTS, outputs: OUTPUTS, transpose: false });
  plainKernels.linear({
    out: expected,
    x,
    packed: plain,
    rows: ROWS,
    inputs: INPUTS,
    outputs: OUTPUTS,
    accumulate: false,
  });
  const matrix = kernels.stored({ weight: bench.floats(weight), inputs: INPUTS, outputs: OUTPUTS, transpose: false });
  const given = bench.floats(x);
  const product = (rows: number) => {
    const out = bench.zeros(rows * OUTPUTS);
    kernels.linear({ out, x: given, packed: matrix, rows, inputs: INPUTS, outputs: OUTPUTS, accumulate: false });
    return out;
  };
  const [all, ...few] = await kernels.read([ROWS, ...FEW].map(product));
  if (all === undefined) throw new RangeError('no product was read');
  return { gap: gapOf(all, expected), rowsKeepBits: few.every((values) => sameBits(values, all)) };
}

/** Fused operations have the bits of the calls that they replace: a row of either kind meets rows of the other. */
async function checkFused(kernels: DeviceKernels, bench: Bench): Promise<DeviceCheck> {
  const { fused } = kernels;
  if (fused === undefined) return { gap: 0, rowsKeepBits: true };
  const sizes = { inputs: INPUTS, outputs: OUTPUTS };
  const weight = bench.floats(noise(INPUTS * OUTPUTS, 'weight'));
  const packed = kernels.stored({ weight, ...sizes, transpose: false });
  const before = { bias: bench.floats(noise(OUTPUTS, 'bias')) };
  const share = {
    x: bench.floats(noise(ROWS * RANK, 'x A')),
    packed: bench.floats(noise(RANK * OUTPUTS, 'B')),
    width: RANK,
  };
  const x = bench.floats(noise(ROWS * INPUTS, 'x'));
  const outs = [0, ...FEW, ROWS].map((rows) => {
    const out = bench.zeros((rows || ROWS) * OUTPUTS);
    if (rows === 0) linearOntoByCalls(kernels, { out, before, x, packed, share, rows: ROWS, ...sizes });
    else fused.linearOnto({ inBfloat16: false, out, before, x, packed, share, rows, ...sizes });
    return out;
  });
  const [first, second] = [bench.floats(noise(ROWS * WIDTH, 'qkv')), bench.floats(noise(ROWS * WIDTH, 'qkv'))];
  const table = bench.floats(noise(ROWS * SHAPE.headDim, 'table'));
  const positions = bench.integers(Int32Array.from({ length: ROWS }, (_, row) => row));
  const attended = () => bench.zeros(ROWS * SHAPE.heads * SHAPE.headDim);
  const [batch, cached] = [attended(), attended()];
  kernels.rope({ qkv: first, table, positions, rows: ROWS, heads: SHAPE, inverse: false });
  const starts = bench.integers(Int32Array.of(0, ROWS));
  kernels.attention({
    out: batch,
    logSumExp: bench.zeros(ROWS * SHAPE.heads),
    qkv: first,
    starts,
    sequences: 1,
    heads: SHAPE,
  });
  const slot = kernels.cacheSlotSize({ capacity: ROWS, heads: SHAPE });
  fused.ropeAttentionCached({
    out: cached,
    keys: bench.zeros(slot),
    values: bench.zeros(slot),
    qkv: second,
    table,
    slots: bench.integers(new Int32Array(ROWS)),
    positions,
    alike: bench.integers(new Int32Array(ROWS)),
    rows: ROWS,
    capacity: ROWS,
    heads: SHAPE,
  });
  const [inBatch, inCache, byCalls, ...atOnce] = await kernels.read([batch, cached, ...outs]);
  if (inBatch === undefined || inCache === undefined || byCalls === undefined) throw new RangeError('nothing was read');
  const rowsKeepBits = sameBits(inCache, inBatch) && atOnce.every((values) => sameBits(values, byCalls));
  return { gap: 0, rowsKeepBits };
}

async function checkAttention(kernels: DeviceKernels, bench: Bench): Promise<DeviceCheck> {
  const [rows, outputs] = [ROWS, ROWS * SHAPE.heads * SHAPE.headDim];
  const qkv = noise(rows * WIDTH, 'qkv');
  const starts = Int32Array.of(0, rows);
  const expected = new Float32Array(outputs);
  plainKernels.attention({
    out: expected,
    logSumExp: new Float32Array(rows * SHAPE.heads),
    qkv,
    starts,
    sequences: 1,
    heads: SHAPE,
  });
  const [batch, cached] = [bench.zeros(outputs), bench.zeros(outputs)];
  const given = bench.floats(qkv);
  kernels.attention({
    out: batch,
    logSumExp: bench.zeros(rows * SHAPE.heads),
    qkv: given,
    starts: bench.integers(starts),
    sequences: 1,
    heads: SHAPE,
  });
  const slot = kernels.cacheSlotSize({ capacity: rows, heads: SHAPE });
  const [keys, values] = [bench.zeros(slot), bench.zeros(slot)];
  const positions = bench.integers(Int32Array.from({ length: rows }, (_, row) => row));
  const slots = bench.integers(new Int32Array(rows));
  kernels.attentionCached({
    out: cached,
    keys,
    values,
    qkv: given,
    slots,
    positions,
    alike: slots,
    rows,
    capacity: rows,
    heads: SHAPE,
  });
  const [inBatch, inCache] = await kernels.read([batch, cached]);
  return { gap: gapOf(inBatch, expected), rowsKeepBits: sameBits(inCache, inBatch) };
}

async function checkSampling(kernels: DeviceKernels, bench: Bench): Promise<DeviceCheck> {
  const logits = noise(ROWS * OUTPUTS, 'logits');
  const temperatures = new Float32Array(ROWS).fill(0.8);
  const [given, inverse] = [bench.floats(logits), bench.floats(temperatures)];
  const tokens = bench.integers(new Int32Array(ROWS));
  const [sampled, scored] = [bench.zeros(ROWS), bench.zeros(ROWS)];
  const [topK, topP] = [bench.integers(new Int32Array(ROWS)), bench.floats(new Float32Array(ROWS).fill(1))];
  const uniforms = bench.floats(noise(ROWS, 'uniforms').map(Math.abs));
  kernels.sampleTokens({
    tokens,
    logprobs: sampled,
    logits: given,
    uniforms,
    inverseTemperature: inverse,
    topK,
    topP,
    rows: ROWS,
    vocabSize: OUTPUTS,
  });
  kernels.tokenLogprobs({
    logprobs: scored,
    logSumExp: bench.zeros(ROWS),
    entropy: bench.zeros(ROWS),
    logits: given,
    targets: tokens,
    inverseTemperature: inverse,
    rows: ROWS,
    vocabSize: OUTPUTS,
  });
  const [targets, bySampler, byTrainer] = await kernels.read([tokens, sampled, scored]);
  const expected = new Float32Array(ROWS);
  const unused = () => new Float32Array(ROWS);
  plainKernels.tokenLogprobs({
    logprobs: expected,
    logSumExp: unused(),
    entropy: unused(),
    logits,
    targets,
    inverseTemperature: temperatures,
    rows: ROWS,
    vocabSize: OUTPUTS,
  });
  return { gap: gapOf(byTrainer, expected), rowsKeepBits: sameBits(bySampler, byTrainer) };
}

function noise(length: number, key: string): Float32Array {
  const stream = new RandomStream('check of a device', key);
  return Float32Array.from({ length }, () => stream.word() / 2 ** 31 - 1);
}

/** NaN if one of the values is NaN. */
const gapOf = (values: Float32Array, expected: Float32Array) =>
  values.reduce((gap, value, i) => {
    const right = expected[i] as number;
    return Math.max(gap, Math.abs(value - right) / (1 + Math.abs(right)));
  }, 0);

const sameBits = (values: Float32Array, longer: Float32Array) =>
  values.every((value, i) => Object.is(value, longer[i]));
