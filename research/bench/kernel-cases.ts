/**
 * Each kernel with the arguments of the decoder's calls on a shape, and with the least arithmetic and memory traffic of
 * a call.
 */
import { ropeTable } from '@drmas/engine/internal/model/decoder/weights/rotary-table';
import type { Heads, WeightArray } from '@drmas/engine/internal/tensor/kernel-arguments';
import type { HostKernels } from '@drmas/engine/kernels';
import { decoderConfig, type Shape } from './workload.js';

export interface KernelCase {
  readonly name: string;
  /** The sizes of the call, for the table. */
  readonly sizes: string;
  /** The floating-point operations of a call; a multiply-add is two. */
  readonly flops: number;
  /** The bytes of a call, with every input read once and every output written once. */
  readonly bytes: number;
  run(): void;
}

/** The rows of a training batch, and the requests that decode together, at the middle position of a request. */
const ROWS = 1024;
const DECODING = 256;
/** A number of rows so small that reading the weights dominates the time. */
const FEW = 4;
const POSITION = 120;
const CAPACITY = 320;
/** The positions that a group of siblings have in common, of its prompt. */
const ALIKE = 96;
/** The operations of an exponential: range reduction, a polynomial, scaling. */
const EXP = 20;

export function kernelCases(kernels: HostKernels, shape: Shape): KernelCase[] {
  const { width, heads, kvHeads, feedForward, vocabSize } = shape;
  const qkvWidth = (heads + 2 * kvHeads) * (width / heads);
  return [
    ...linearCases(kernels, 'qkv', ROWS, width, qkvWidth),
    ...linearCases(kernels, 'gate and up', ROWS, width, 2 * feedForward),
    ...linearCases(kernels, 'down', ROWS, feedForward, width),
    ...linearCases(kernels, 'head', Math.max(16, Math.floor(2 ** 18 / vocabSize)), width, vocabSize),
    linearCase(kernels, 'gate and up, decoding', DECODING, width, 2 * feedForward),
    linearCase(kernels, 'gate and up, few rows', FEW, width, 2 * feedForward),
    ...bfloat16ProductCases(kernels, 'qkv', ROWS, width, qkvWidth),
    ...bfloat16ProductCases(kernels, 'gate and up', ROWS, width, 2 * feedForward),
    ...bfloat16ProductCases(kernels, 'down', ROWS, feedForward, width),
    ...bfloat16ProductCases(kernels, 'head', Math.max(16, Math.floor(2 ** 18 / vocabSize)), width, vocabSize),
    bfloat16Case(kernels, 'gate and up', ROWS, width, 2 * feedForward),
    bfloat16Case(kernels, 'gate and up, decoding', DECODING, width, 2 * feedForward),
    bfloat16Case(kernels, 'gate and up, few rows', FEW, width, 2 * feedForward),
    ...attentionCases(kernels, shape, qkvWidth),
    ...rowCases(kernels, shape, qkvWidth),
    ...headCases(kernels, shape),
    ...flatCases(kernels, parametersOf(shape, qkvWidth)),
  ];
}

function parametersOf({ vocabSize, width, layers, feedForward }: Shape, qkvWidth: number): number {
  return vocabSize * width + layers * (width * qkvWidth + width * width + 3 * width * feedForward + 2 * width) + width;
}

/** Random small numbers of either sign, neither denormal nor growing from call to call. */
function filled(kernels: HostKernels, length: number, scale = 1): Float32Array {
  const buffer = kernels.allocate(length);
  for (let i = 0; i < length; i++) buffer[i] = scale * (((i * 2654435761) % 1000) / 1000 - 0.5);
  return buffer;
}

function integers(kernels: HostKernels, length: number, at: (i: number) => number): Int32Array {
  const buffer = kernels.allocateIntegers(length);
  for (let i = 0; i < length; i++) buffer[i] = at(i);
  return buffer;
}

/** The numbers of a float32 buffer in bfloat16, rounded towards zero. */
function toBfloat16(kernels: HostKernels, floats: Float32Array): Uint16Array {
  const buffer = kernels.allocateBfloat16(floats.length);
  const bits = new Uint32Array(floats.buffer, floats.byteOffset, floats.length);
  for (let i = 0; i < buffer.length; i++) buffer[i] = (bits[i] as number) >>> 16;
  return buffer;
}

function linearCase(kernels: HostKernels, name: string, rows: number, inputs: number, outputs: number): KernelCase {
  const packed = kernels.allocate(kernels.packedSize({ inputs, outputs }));
  kernels.pack({ packed, weight: filled(kernels, inputs * outputs), inputs, outputs, transpose: false });
  return productCase(kernels, name, packed, rows, inputs, outputs);
}

function bfloat16Case(kernels: HostKernels, name: string, rows: number, inputs: number, outputs: number): KernelCase {
  const packed = kernels.allocateBfloat16(kernels.packedSize({ inputs, outputs }));
  kernels.pack({
    packed,
    weight: toBfloat16(kernels, filled(kernels, inputs * outputs)),
    inputs,
    outputs,
    transpose: false,
  });
  return productCase(kernels, `${name}, bfloat16`, packed, rows, inputs, outputs);
}

function productCase(
  kernels: HostKernels,
  name: string,
  packed: WeightArray,
  rows: number,
  inputs: number,
  outputs: number,
): KernelCase {
  const [out, x] = [kernels.allocate(rows * outputs), filled(kernels, rows * inputs)];
  return {
    name: `linear (${name})`,
    sizes: `${rows} x ${inputs} x ${outputs}`,
    flops: 2 * rows * inputs * outputs,
    bytes: 4 * rows * (inputs + outputs) + packed.BYTES_PER_ELEMENT * inputs * outputs,
    run: () => kernels.linear({ out, x, packed, rows, inputs, outputs, accumulate: false }),
  };
}

function linearCases(kernels: HostKernels, name: string, rows: number, inputs: number, outputs: number): KernelCase[] {
  const [x, dOut] = [filled(kernels, rows * inputs), filled(kernels, rows * outputs)];
  const weight = filled(kernels, inputs * outputs);
  const packed = kernels.allocate(kernels.packedSize({ inputs, outputs }));
  return [
    linearCase(kernels, name, rows, inputs, outputs),
    {
      name: `linearWeightGradient (${name})`,
      sizes: `${rows} x ${inputs} x ${outputs}`,
      flops: 2 * rows * inputs * outputs,
      bytes: 4 * (rows * inputs + 2 * inputs * outputs + rows * outputs),
      run: () => kernels.linearWeightGradient({ dWeight: weight, x, dOut, rows, inputs, outputs }),
    },
    {
      name: `pack (${name})`,
      sizes: `${inputs} x ${outputs}`,
      flops: 0,
      bytes: 8 * inputs * outputs,
      run: () => kernels.pack({ packed, weight, inputs, outputs, transpose: false }),
    },
  ];
}

/** Products of operands rounded to bfloat16, against the peak of float32's. */
function bfloat16ProductCases(
  kernels: HostKernels,
  name: string,
  rows: number,
  inputs: number,
  outputs: number,
): KernelCase[] {
  const [x, dOut] = [filled(kernels, rows * inputs), filled(kernels, rows * outputs)];
  const [out, weight] = [kernels.allocate(rows * outputs), filled(kernels, inputs * outputs)];
  const packed = kernels.allocateBfloat16(kernels.bfloat16PackedSize({ inputs, outputs }));
  kernels.bfloat16Pack({ packed, weight, inputs, outputs, transpose: false });
  const [sizes, flops] = [`${rows} x ${inputs} x ${outputs}`, 2 * rows * inputs * outputs];
  return [
    {
      name: `bfloat16Linear (${name})`,
      sizes,
      flops,
      bytes: 4 * rows * (inputs + outputs) + 2 * inputs * outputs,
      run: () => kernels.bfloat16Linear({ out, x, packed, rows, inputs, outputs, accumulate: false }),
    },
    {
      name: `bfloat16LinearWeightGradient (${name})`,
      sizes,
      flops,
      bytes: 4 * (rows * inputs + 2 * inputs * outputs + rows * outputs),
      run: () => kernels.bfloat16LinearWeightGradient({ dWeight: weight, x, dOut, rows, inputs, outputs }),
    },
    {
      name: `bfloat16Pack (${name})`,
      sizes: `${inputs} x ${outputs}`,
      flops: 0,
      bytes: 6 * inputs * outputs,
      run: () => kernels.bfloat16Pack({ packed, weight, inputs, outputs, transpose: false }),
    },
  ];
}

function attentionCases(kernels: HostKernels, shape: Shape, qkvWidth: number): KernelCase[] {
  const { heads, kvHeads, width, sequence } = shape;
  const headDim = width / heads;
  const shapeOfHeads: Heads = { heads, kvHeads, headDim };
  const sequences = Math.max(1, ROWS / sequence);
  const rows = sequences * sequence;
  const [out, lse, qkv] = [
    kernels.allocate(rows * width),
    kernels.allocate(rows * heads),
    filled(kernels, rows * qkvWidth),
  ];
  const [dQkv, dOut] = [kernels.allocate(rows * qkvWidth), filled(kernels, rows * width)];
  const starts = integers(kernels, sequences + 1, (s) => s * sequence);
  const forward = () => kernels.attention({ out, logSumExp: lse, qkv, starts, sequences, heads: shapeOfHeads });
  forward();
  // Pairs of a query and a key, half of the square; two products of headDim forward, five backward, one exponential
  // each.
  const pairs = (rows * heads * (sequence + 1)) / 2;
  const slot = kernels.cacheSlotSize({ capacity: CAPACITY, heads: shapeOfHeads });
  const [keys, values] = [filled(kernels, DECODING * slot), filled(kernels, DECODING * slot)];
  const slots = integers(kernels, DECODING, (r) => r);
  const positions = integers(kernels, DECODING, () => POSITION);
  const decoding = (alike: (row: number) => number) => {
    const given = { out, keys, values, qkv, slots, positions, alike: integers(kernels, DECODING, alike) };
    return () => kernels.attentionCached({ ...given, rows: DECODING, capacity: CAPACITY, heads: shapeOfHeads });
  };
  return [
    {
      name: 'attention',
      sizes: `${sequences} x ${sequence}, ${heads} heads of ${headDim}`,
      flops: pairs * (4 * headDim + EXP),
      bytes: 4 * rows * (qkvWidth + width),
      run: forward,
    },
    {
      name: 'attentionBackward',
      sizes: `${sequences} x ${sequence}, ${heads} heads of ${headDim}`,
      flops: pairs * (10 * headDim + EXP),
      bytes: 4 * rows * (2 * qkvWidth + 2 * width),
      run: () =>
        kernels.attentionBackward({ dQkv, dOut, out, logSumExp: lse, qkv, starts, sequences, heads: shapeOfHeads }),
    },
    {
      name: 'attentionCached, decoding',
      sizes: `${DECODING} at position ${POSITION}`,
      flops: DECODING * heads * (POSITION + 1) * (4 * headDim + EXP),
      bytes: 4 * DECODING * (2 * kvHeads * headDim * (POSITION + 1) + qkvWidth + width),
      run: decoding(() => 0),
    },
    {
      name: 'attentionCached, decoding alike',
      sizes: `${DECODING} at position ${POSITION}, 8 with ${ALIKE} of them alike`,
      flops: DECODING * heads * (POSITION + 1) * (4 * headDim + EXP),
      bytes: 4 * DECODING * (2 * kvHeads * headDim * (POSITION + 1 - (7 * ALIKE) / 8) + qkvWidth + width),
      run: decoding((row) => (row % 8 === 0 ? 0 : ALIKE)),
    },
  ];
}

function rowCases(kernels: HostKernels, shape: Shape, qkvWidth: number): KernelCase[] {
  const { width, feedForward, heads, kvHeads, vocabSize } = shape;
  const headDim = width / heads;
  const size = ROWS * width;
  const [out, x, dOut] = [kernels.allocate(size), filled(kernels, size), filled(kernels, size, 1e-3)];
  const [gain, dGain, inverse] = [filled(kernels, width), kernels.allocate(width), kernels.allocate(ROWS)];
  kernels.rmsNorm({ out, inverse, x, gain, rows: ROWS, width, epsilon: 1e-6 });
  const [gateUp, dGateUp] = [filled(kernels, ROWS * 2 * feedForward), kernels.allocate(ROWS * 2 * feedForward)];
  const activated = filled(kernels, ROWS * feedForward);
  const qkv = filled(kernels, ROWS * qkvWidth);
  // Real cosines and sines: with other numbers `rope` would shrink its values at each call until they are subnormal.
  const rotations = ropeTable(kernels, decoderConfig(shape, 512)) as Float32Array;
  const positions = integers(kernels, ROWS, (r) => r % 512);
  const table = filled(kernels, vocabSize * width);
  const tokens = integers(kernels, ROWS, (r) => (r * 40503) % vocabSize);
  const sizes = `${ROWS} x ${width}`;
  return [
    {
      name: 'rmsNorm',
      sizes,
      flops: 4 * size,
      bytes: 8 * size,
      run: () => kernels.rmsNorm({ out, inverse, x, gain, rows: ROWS, width, epsilon: 1e-6 }),
    },
    {
      name: 'rmsNormBackward',
      sizes,
      flops: 8 * size,
      bytes: 16 * size,
      run: () => kernels.rmsNormBackward({ dx: out, dGain, dOut, x, gain, inverse, rows: ROWS, width }),
    },
    {
      name: 'rope',
      sizes: `${ROWS} x ${heads + kvHeads} heads of ${headDim}`,
      flops: 3 * ROWS * (heads + kvHeads) * headDim,
      bytes: 8 * ROWS * (heads + kvHeads) * headDim,
      run: () =>
        kernels.rope({
          qkv,
          table: rotations,
          positions,
          rows: ROWS,
          heads: { heads, kvHeads, headDim },
          inverse: false,
        }),
    },
    {
      name: 'swiglu',
      sizes: `${ROWS} x ${feedForward}`,
      flops: (EXP + 4) * ROWS * feedForward,
      bytes: 12 * ROWS * feedForward,
      run: () => kernels.swiglu({ out: activated, gateUp, rows: ROWS, feedForward }),
    },
    {
      name: 'swigluBackward',
      sizes: `${ROWS} x ${feedForward}`,
      flops: (EXP + 10) * ROWS * feedForward,
      bytes: 20 * ROWS * feedForward,
      run: () => kernels.swigluBackward({ dGateUp, dOut: activated, gateUp, rows: ROWS, feedForward }),
    },
    {
      name: 'embed',
      sizes: `${ROWS} of ${vocabSize} x ${width}`,
      flops: 0,
      bytes: 8 * size,
      run: () => kernels.embed({ out, table, tokens, rows: ROWS, width }),
    },
    {
      name: 'embedBackward',
      sizes: `${ROWS} of ${vocabSize} x ${width}`,
      flops: size,
      bytes: 12 * size,
      run: () => kernels.embedBackward({ dTable: table, dOut, tokens, rows: ROWS, width }),
    },
  ];
}

function headCases(kernels: HostKernels, { vocabSize }: Shape): KernelCase[] {
  const rows = Math.min(DECODING, Math.max(16, Math.floor(2 ** 18 / vocabSize)));
  const size = rows * vocabSize;
  const logits = filled(kernels, size, 4);
  // Each call overwrites this buffer with gradients, which does not change the amount of work.
  const gradient = filled(kernels, size, 4);
  const buffers = () => kernels.allocate(rows);
  const [logprobs, lse, entropy] = [buffers(), buffers(), buffers()];
  const [uniforms, inverse, topP] = [buffers().fill(0.5), buffers().fill(1), buffers().fill(1)];
  const topK = kernels.allocateIntegers(rows);
  const targets = integers(kernels, rows, (r) => (r * 31) % vocabSize);
  const drawn = kernels.allocateIntegers(rows);
  const sizes = `${rows} x ${vocabSize}`;
  kernels.tokenLogprobs({
    logprobs,
    logSumExp: lse,
    entropy,
    logits,
    targets,
    inverseTemperature: inverse,
    rows,
    vocabSize,
  });
  return [
    {
      name: 'tokenLogprobs',
      sizes,
      flops: (EXP + 5) * size,
      bytes: 4 * size,
      run: () =>
        kernels.tokenLogprobs({
          logprobs,
          logSumExp: lse,
          entropy,
          logits,
          targets,
          inverseTemperature: inverse,
          rows,
          vocabSize,
        }),
    },
    {
      name: 'tokenLogprobsBackward',
      sizes,
      flops: (EXP + 3) * size,
      bytes: 8 * size,
      run: () =>
        kernels.tokenLogprobsBackward({
          logits: gradient,
          dLogprobs: logprobs,
          logSumExp: lse,
          targets,
          inverseTemperature: inverse,
          rows,
          vocabSize,
        }),
    },
    {
      name: 'tokenEntropyBackward',
      sizes,
      flops: (EXP + 5) * size,
      bytes: 8 * size,
      run: () =>
        kernels.tokenEntropyBackward({
          logits: gradient,
          dLogprobs: logprobs,
          dEntropy: entropy,
          logSumExp: lse,
          entropy,
          targets,
          inverseTemperature: inverse,
          rows,
          vocabSize,
        }),
    },
    {
      name: 'sampleTokens',
      sizes,
      flops: (EXP + 4) * size,
      bytes: 4 * size,
      run: () =>
        kernels.sampleTokens({
          tokens: drawn,
          logprobs,
          logits,
          uniforms,
          inverseTemperature: inverse,
          topK,
          topP,
          rows,
          vocabSize,
        }),
    },
  ];
}

function flatCases(kernels: HostKernels, length: number): KernelCase[] {
  const [weights, gradient] = [filled(kernels, length), filled(kernels, length, 1e-3)];
  const [first, second] = [kernels.allocate(length), kernels.allocate(length)];
  const sizes = `${length}`;
  const settings = {
    learningRate: 1e-6,
    beta1: 0.9,
    beta2: 0.999,
    epsilon: 1e-8,
    weightDecay: 0,
    step: 1,
    gradientScale: 1,
  };
  return [
    {
      name: 'adamw',
      sizes,
      flops: 15 * length,
      bytes: 28 * length,
      run: () => kernels.adamw({ weights, gradient, firstMoment: first, secondMoment: second, length, settings }),
    },
    {
      name: 'sumOfSquares',
      sizes,
      flops: 2 * length,
      bytes: 4 * length,
      run: () => void kernels.sumOfSquares({ x: weights, length }),
    },
    {
      name: 'add',
      sizes,
      flops: length,
      bytes: 12 * length,
      run: () => kernels.add({ out: second, x: gradient, length }),
    },
  ];
}
