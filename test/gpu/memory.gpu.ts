/** Memory of a device: parts of large matrices, matrices that are read in place, writing, reading, freeing. */

import { DeviceError } from '@drmas/engine/errors';
import { baseWeights } from '@drmas/engine/internal/model/decoder/weights/model-weights';
import { toBfloat16 } from '@drmas/engine/internal/tensor/bfloat16';
import { RandomStream } from '@drmas/engine/math';
import type { DeviceKernels } from '@drmas/webgpu/internal/kernels/device-kernels';
import type { DeviceBfloat16s, DeviceFloats } from '@drmas/webgpu/internal/kernels/device-memory';
import { describe, expect, it } from 'vitest';
import { plain } from '../contracts/decoder.js';
import { openedDevices, sharedKernels } from './opened-device.js';

const open = openedDevices();
const [ROWS, INPUTS, OUTPUTS] = [3, 49, 125];

function floats(kernels: DeviceKernels, values: Float32Array): DeviceFloats {
  const memory = kernels.allocate(values.length);
  kernels.write(memory, values);
  return memory;
}

function bfloat16s(kernels: DeviceKernels, values: Float32Array): DeviceBfloat16s {
  const memory = kernels.allocateBfloat16(values.length);
  kernels.write(memory, toBfloat16(values));
  return memory;
}

function noise(length: number, key: string): Float32Array {
  const stream = new RandomStream('memory of a device', key);
  return Float32Array.from({ length }, () => stream.normal());
}

/** A product with each form of the matrix: packed or not, transposed or not, written or added to the output. */
async function products(kernels: DeviceKernels): Promise<Map<string, Float32Array>> {
  const x = floats(kernels, noise(ROWS * INPUTS, 'x'));
  const matrix = noise(INPUTS * OUTPUTS, 'matrix');
  const results = new Map<string, Float32Array>();
  for (const kind of ['float32', 'bfloat16'] as const)
    for (const transpose of [false, true]) {
      const weight = kind === 'float32' ? floats(kernels, matrix) : bfloat16s(kernels, matrix);
      const size = kernels.packedSize({ inputs: INPUTS, outputs: OUTPUTS });
      const packed = kind === 'float32' ? kernels.allocate(size) : kernels.allocateBfloat16(size);
      kernels.pack({ packed, weight, inputs: INPUTS, outputs: OUTPUTS, transpose });
      for (const accumulate of [false, true])
        for (const [way, factor] of [
          ['packed', packed],
          ['stored', kernels.stored({ weight, inputs: INPUTS, outputs: OUTPUTS, transpose })],
        ] as const) {
          const out = floats(kernels, noise(ROWS * OUTPUTS, 'out'));
          kernels.linear({ out, x, packed: factor, rows: ROWS, inputs: INPUTS, outputs: OUTPUTS, accumulate });
          results.set(`${way} ${kind} ${transpose} ${accumulate}`, (await kernels.read([out]))[0]);
        }
    }
  return results;
}

describe('a matrix', () => {
  it('gives the same bits packed, where it lies, and in parts that a small binding holds', async () => {
    const whole = await products(await sharedKernels());
    expect(whole.size).toBe(16);
    for (const [name, values] of whole)
      if (name.startsWith('packed')) expect(whole.get(name.replace('packed', 'stored')), name).toEqual(values);
    // 125 outputs of 49 inputs in float32 are 24,500 bytes.
    for (const [name, values] of await products((await open({ binding: 4096 })).kernels))
      expect(values, name).toEqual(whole.get(name));
  });

  it('is multiplied from where it lies by rounded factors, as from its packed form', async () => {
    const kernels = await sharedKernels();
    const [x, weight] = [
      floats(kernels, noise(ROWS * INPUTS, 'x')),
      floats(kernels, noise(INPUTS * OUTPUTS, 'matrix')),
    ];
    const packed = kernels.allocateBfloat16(kernels.bfloat16PackedSize({ inputs: INPUTS, outputs: OUTPUTS }));
    kernels.bfloat16Pack({ packed, weight, inputs: INPUTS, outputs: OUTPUTS, transpose: false });
    const [fromPacked, fromStored] = [kernels.allocate(ROWS * OUTPUTS), kernels.allocate(ROWS * OUTPUTS)];
    kernels.bfloat16Linear({
      out: fromPacked,
      x,
      packed,
      rows: ROWS,
      inputs: INPUTS,
      outputs: OUTPUTS,
      accumulate: false,
    });
    // The product rounds to bfloat16, so the matrix may be in float32.
    const stored = kernels.stored({
      weight,
      inputs: INPUTS,
      outputs: OUTPUTS,
      transpose: false,
    }) as unknown as DeviceBfloat16s;
    kernels.bfloat16Linear({
      out: fromStored,
      x,
      packed: stored,
      rows: ROWS,
      inputs: INPUTS,
      outputs: OUTPUTS,
      accumulate: false,
    });
    const [expected, values] = await kernels.read([fromPacked, fromStored]);
    expect(values).toEqual(expected);
    expect(expected.some((value) => value !== 0)).toBe(true);
  });
});

describe('the memory of a device', () => {
  it('is read in one submit for any number of memories, and written without a submit of its own', async () => {
    const kernels = await sharedKernels();
    const before = kernels.counts.submits;
    const memories = [1, 2, 3].map((value) => {
      const memory = kernels.allocate(5);
      kernels.write(memory, new Float32Array(5).fill(value));
      return memory;
    });
    const contents = await kernels.read(memories);
    expect(kernels.counts.submits - before).toBe(1);
    expect(contents.map((values) => values[4])).toEqual([1, 2, 3]);
  });

  it('is written in order with computations, in small and large parts', async () => {
    const kernels = await sharedKernels();
    for (const length of [5, 100_000]) {
      const [x, sum] = [kernels.allocate(length), kernels.allocate(length)];
      for (const value of [1, 10, 100]) {
        kernels.write(x, new Float32Array(length).fill(value));
        kernels.add({ out: sum, x, length });
      }
      expect([...new Set((await kernels.read([sum]))[0])]).toEqual([111]);
    }
  });

  it('is written from memory that threads share, and of an odd number of numbers in bfloat16', async () => {
    const kernels = await sharedKernels();
    for (const length of [5, 100_001]) {
      const [memory, shared] = [kernels.allocateBfloat16(length), new SharedArrayBuffer(2 * length)];
      const values = new Uint16Array(shared).fill(0x3f80);
      kernels.write(memory, values);
      expect((await kernels.read([memory]))[0]).toEqual(Uint16Array.from(values));
    }
  });

  it('takes more small writes than a submit has room for', async () => {
    const kernels = await sharedKernels();
    const x = kernels.allocate(5000);
    for (let i = 0; i < 5000; i++) kernels.write(x.subarray(i), Float32Array.of(i));
    expect((await kernels.read([x]))[0]).toEqual(Float32Array.from({ length: 5000 }, (_, i) => i));
  });

  it('is bound once: the same call again makes no bind group', async () => {
    const kernels = await sharedKernels();
    const [out, x] = [kernels.allocate(100), kernels.allocate(100)];
    kernels.add({ out, x, length: 100 });
    const { bindGroups, dispatches } = kernels.counts;
    kernels.add({ out, x, length: 100 });
    expect(kernels.counts).toMatchObject({ bindGroups, dispatches: dispatches + 1 });
  });

  it('serves calls that were made before it was given back', async () => {
    const kernels = await sharedKernels();
    const [out, x] = [kernels.allocate(1), floats(kernels, Float32Array.of(7))];
    kernels.add({ out, x, length: 1 });
    kernels.free(x);
    kernels.free(x);
    expect((await kernels.read([out]))[0]).toEqual(Float32Array.of(7));
  });

  it('has its end, which is said before anything is computed', async () => {
    const kernels = await sharedKernels();
    expect(() => kernels.allocate(2 ** 40)).toThrow(DeviceError);
    expect(() => kernels.allocate(2 ** 40)).toThrow(/a buffer of 4398046511104 bytes: this GPU has none above \d+/);
  });
});

// Commands are checked and counted on the host, so a device that executes nothing will do.
const openNothing = openedDevices('null');

describe('memories that are neighbours', () => {
  it('are taken where an engine has them: gains in one buffer of weights, gradients in another', async () => {
    const { kernels } = await openNothing();
    const shape = { heads: 2, kvHeads: 1, headDim: 4 };
    const [weights, gradient, arena] = [kernels.allocate(8), kernels.allocate(8), kernels.allocate(512)];
    const at = (n: number) => arena.subarray(64 * n, 64 * n + 16);
    const given = {
      qkv: at(0),
      queryGain: weights.subarray(0, 4),
      keyGain: weights.subarray(4),
      queryInverse: at(1),
      keyInverse: at(2),
      rows: 1,
      heads: shape,
    };
    kernels.headNorm({ ...given, epsilon: 1e-6 });
    const [dQueryGain, dKeyGain] = [gradient.subarray(0, 4), gradient.subarray(4)];
    kernels.headNormBackward({ dQkv: at(3), dQueryGain, dKeyGain, ...given });
    await expect(kernels.read([arena])).resolves.toHaveLength(1);
    // The device sees both uses in one dispatch, and refuses to write memory that it also reads.
    kernels.add({ out: weights.subarray(0, 4), x: weights.subarray(4), length: 4 });
    await expect(kernels.read([arena])).rejects.toMatchObject({ reason: 'refused' });
  });
});

describe('the weights of a base', () => {
  it('lie on the device once, whichever way passes go, in float32 and in bfloat16', async () => {
    const { kernels } = await openNothing();
    const config = { ...plain, vocabSize: 512, width: 256 };
    for (const kind of ['float32', 'bfloat16'] as const) {
      const base = baseWeights(kernels, config, kind);
      const { bytes } = kernels.counts;
      for (const direction of ['forward', 'backward'] as const)
        for (const precision of ['float32', 'bfloat16'] as const) base.packed(direction, precision);
      expect(kernels.counts).toMatchObject({ bytes, dispatches: 0 });
    }
  });
});

describe('memory that is given back', () => {
  it('takes its bind groups along, and nothing grows in thousands of ticks', async () => {
    const { kernels } = await openNothing();
    const weights = kernels.allocate(64 * 64);
    const shape = { heads: 2, kvHeads: 1, headDim: 4 };
    const tick = (keys: DeviceFloats, values: DeviceFloats, arena: DeviceFloats) => {
      const at = (row: number) => arena.subarray(row * 64, row * 64 + 16);
      const [slots, positions] = [kernels.integersIn(at(2)), kernels.integersIn(at(3))];
      kernels.write(slots, Int32Array.of(0));
      kernels.linear({ out: at(0), x: at(1), packed: weights, rows: 1, inputs: 8, outputs: 16, accumulate: false });
      kernels.attentionCached({
        out: at(4),
        keys,
        values,
        qkv: at(0),
        slots,
        positions,
        alike: slots,
        rows: 1,
        capacity: 16,
        heads: shape,
      });
      kernels.copy({ to: at(5), from: at(4) });
    };
    const counted: DeviceKernels['counts'][] = [];
    for (let run = 0; run < 30; run++) {
      const [keys, values, arena] = [kernels.allocate(64), kernels.allocate(64), kernels.allocate(640)];
      for (let i = 0; i < 100; i++) tick(keys, values, arena);
      await kernels.read([arena]);
      for (const memory of [keys, values, arena]) kernels.free(memory);
      counted.push(kernels.counts);
    }
    const [first, last] = [counted[0] as (typeof counted)[0], counted.at(-1) as (typeof counted)[0]];
    expect(last.dispatches).toBe(30 * first.dispatches);
    expect(last).toMatchObject({ buffers: first.buffers, bytes: first.bytes, keptBindGroups: first.keptBindGroups });
    expect(last.bindGroups).toBe(30 * first.bindGroups);
    expect(first.keptBindGroups).toBeLessThan(first.bindGroups);
  });
});
