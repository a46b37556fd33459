/** What surrounds the kernels: the check of a device, parts of large matrices, failures, and reading. */
import { afterEach, describe, expect, it } from 'vitest';
import { DeviceError } from '../../src/core/errors.js';
import { checkDevice } from '../../src/tensor/webgpu/check-device.js';
import type { DeviceKernels } from '../../src/tensor/webgpu/device-kernels.js';
import { inspectGpu } from '../../src/tensor/webgpu/inspect-gpu.js';
import { findAdapter } from '../../src/tensor/webgpu/open-device.js';
import { createWebgpuKernels, type WebgpuOptions } from '../../src/tensor/webgpu/webgpu.js';
import type { GpuDevice } from '../../src/tensor/webgpu/webgpu-api.js';

let opened: { readonly device: GpuDevice; readonly kernels: DeviceKernels } | undefined;

async function open(options?: WebgpuOptions) {
  const adapter = await findAdapter();
  const device = await adapter.open();
  opened = { device, kernels: createWebgpuKernels(device, adapter.name, options) };
  return opened;
}

afterEach(() => {
  opened?.kernels.dispose();
  opened = undefined;
});

/** A product of whole numbers, which every order of summing gives exactly. */
async function product(kernels: DeviceKernels, outputs: number): Promise<Float32Array> {
  const [rows, inputs] = [3, 8];
  const [x, weight] = [kernels.allocate(rows * inputs), kernels.allocate(inputs * outputs)];
  kernels.write(
    x,
    Float32Array.from({ length: rows * inputs }, (_, i) => i % 5),
  );
  kernels.write(
    weight,
    Float32Array.from({ length: inputs * outputs }, (_, i) => i % 7),
  );
  const packed = kernels.allocate(kernels.packedSize(inputs, outputs));
  kernels.pack(packed, weight, inputs, outputs, true);
  const out = kernels.allocate(rows * outputs);
  kernels.linear(out, x, packed, rows, inputs, outputs, false);
  const [bytes] = await kernels.read([out]);
  return new Float32Array(bytes as ArrayBuffer);
}

describe('the check of a device', () => {
  it('finds the kernels near the plain ones, and rows with the same bits', async () => {
    const { kernels } = await open();
    const { gap, rowsKeepBits } = await checkDevice(kernels);
    expect(gap).toBeGreaterThan(0);
    expect(gap).toBeLessThan(2e-5);
    expect(rowsKeepBits).toBe(true);
  });

  it('is what drmas doctor says of the adapter', async () => {
    const report = await inspectGpu();
    if ('reason' in report) throw new Error(report.reason);
    expect(report.adapter.name).not.toBe('');
    expect(report.adapter.binding).toBeGreaterThanOrEqual(2 ** 27);
    expect(report.check.gap).toBeLessThan(2e-5);
  });
});

describe('the memory of a device', () => {
  it('holds matrices that no binding holds, in parts with the same result', async () => {
    const whole = await product((await open()).kernels, 500);
    opened?.kernels.dispose();
    const { kernels } = await open({ binding: 2048 });
    expect(await product(kernels, 500)).toEqual(whole);
  });

  it('refuses to pack a matrix that is stored the other way and that no binding holds', async () => {
    const { kernels } = await open({ binding: 2048 });
    const [packed, weight] = [kernels.allocate(8 * 500), kernels.allocate(8 * 500)];
    expect(() => kernels.pack(packed, weight, 8, 500, false)).toThrow(
      'a matrix of 16000 bytes, not transposed: this GPU binds 2048 at once',
    );
  });

  it('is read in one submit however many memories are asked for', async () => {
    const { kernels } = await open();
    const memories = [1, 2, 3].map((value) => {
      const memory = kernels.allocate(5);
      kernels.write(memory, new Float32Array(5).fill(value));
      return memory;
    });
    const before = kernels.counts.submits;
    const contents = await kernels.read(memories);
    expect(kernels.counts.submits - before).toBe(1);
    expect(contents.map((bytes) => new Float32Array(bytes)[4])).toEqual([1, 2, 3]);
  });

  it('is bound once: the same call again makes no bind group', async () => {
    const { kernels } = await open();
    const [out, x] = [kernels.allocate(100), kernels.allocate(100)];
    kernels.add(out, x, 100);
    const { bindGroups, dispatches } = kernels.counts;
    kernels.add(out, x, 100);
    expect(kernels.counts).toMatchObject({ bindGroups, dispatches: dispatches + 1 });
  });

  it('has its end, which is said before anything is computed', async () => {
    const { kernels } = await open();
    expect(() => kernels.allocate(2 ** 40)).toThrow(DeviceError);
    expect(() => kernels.allocate(2 ** 40)).toThrow(/a buffer of 4398046511104 bytes: this GPU has none above \d+/);
  });
});

describe('a device that fails', () => {
  it('says at the next read what it refused', async () => {
    const { device, kernels } = await open();
    const memory = kernels.allocate(4);
    device.createShaderModule({ label: 'wrong', code: 'fn main( {' });
    await expect(kernels.read([memory])).rejects.toMatchObject({
      name: 'DeviceError',
      reason: 'refused',
      message: expect.stringMatching(/^the GPU refused a shader or a command: /),
    });
  });

  it('is lost for good when the driver takes it away', async () => {
    const { device, kernels } = await open();
    const memory = kernels.allocate(4);
    device.destroy();
    await device.lost;
    await expect(kernels.read([memory])).rejects.toMatchObject({ name: 'DeviceError', reason: 'lost' });
    expect(() => kernels.allocate(4)).toThrow(/^the GPU was lost: /);
  });

  it('computes nothing more after it was given back', async () => {
    const { kernels } = await open();
    kernels.dispose();
    expect(() => kernels.allocate(4)).toThrow('these kernels were disposed of');
  });
});
