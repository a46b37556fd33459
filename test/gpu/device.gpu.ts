/** The code around the kernels: the check of a device, its opening, and failures. */

import { type Gpu, inspectGpu } from '@drmas/webgpu';
import { checkDevice, type DeviceCheck } from '@drmas/webgpu/internal/kernels/check-device';
import type { DeviceKernels } from '@drmas/webgpu/internal/kernels/device-kernels';
import { adapterOf, adaptersOf, findAdapter } from '@drmas/webgpu/internal/kernels/open-device';
import { openDeviceKernels } from '@drmas/webgpu/internal/kernels/open-kernels';
import type { PowerPreference } from '@drmas/webgpu/internal/kernels/webgpu-api';
import { describe, expect, it } from 'vitest';
import { openedDevices, sharedKernels } from './opened-device.js';

const open = openedDevices();
const openNothing = openedDevices('null');

describe('the check of a device', () => {
  it('finds the kernels near the plain ones, and rows with the same bits', async () => {
    const { gap, rowsKeepBits } = await checkDevice(await sharedKernels());
    expect(gap).toBeGreaterThan(0);
    expect(gap).toBeLessThan(2e-5);
    expect(rowsKeepBits).toBe(true);
  });

  it('leaves no memory behind but what kernels need for themselves', async () => {
    const { kernels } = await openNothing();
    await checkDevice(kernels);
    const { buffers, bytes } = kernels.counts;
    await checkDevice(kernels);
    expect(kernels.counts).toMatchObject({ buffers, bytes });
    expect(buffers).toBeLessThan(8);
  });

  it('is what drmas doctor says of the adapter', { tags: ['long'] }, async () => {
    const report = await inspectGpu();
    if ('reason' in report) throw new Error(report.reason);
    expect(report.adapter.name).not.toBe('');
    expect(report.adapter.binding).toBeGreaterThanOrEqual(2 ** 27);
    expect(report.check.gap).toBeLessThan(2e-5);
    expect(report.others).toEqual([]);
  });
});

describe('opening a GPU', () => {
  const good: DeviceCheck = { gap: 1e-6, rowsKeepBits: true };
  /** Opens with a check that finds one problem after the other, and counts its calls. */
  async function opening(...results: readonly DeviceCheck[]) {
    let checks = 0;
    const disposed: string[] = [];
    const check = async (kernels: DeviceKernels) => {
      const { dispose } = kernels;
      Object.assign(kernels, {
        dispose: () => {
          disposed.push(kernels.name);
          dispose();
        },
      });
      return results[checks++] as DeviceCheck;
    };
    const kernels = await openDeviceKernels(() => findAdapter('null'), check).catch((error: unknown) => error);
    const result = { kernels, checks, disposed: disposed.length };
    if (!(kernels instanceof Error)) (kernels as DeviceKernels).dispose();
    return result;
  }

  it('takes a device whose rows keep their bits', async () => {
    expect(await opening(good)).toMatchObject({ kernels: { name: 'webgpu' }, checks: 1, disposed: 0 });
  });

  it('does without tiles for few rows where those give other bits', async () => {
    expect(await opening({ ...good, rowsKeepBits: false }, good)).toMatchObject({
      kernels: { name: 'webgpu' },
      checks: 2,
      disposed: 1,
    });
  });

  it('refuses a device whose rows keep their bits in neither way, and one that computes wrong', async () => {
    const lost = { ...good, rowsKeepBits: false };
    expect(await opening(lost, lost)).toMatchObject({
      kernels: { name: 'DeviceError', reason: 'refused', message: expect.stringContaining('the bits of a row depend') },
      disposed: 2,
    });
    for (const gap of [1e-3, Number.NaN])
      expect(await opening({ ...good, gap })).toMatchObject({
        kernels: { name: 'DeviceError', reason: 'refused', message: expect.stringContaining('computes wrong') },
        checks: 1,
        disposed: 1,
      });
  });
});

describe('a device that fails', () => {
  it('names a refused operation at the next read', async () => {
    const { device, kernels } = await open();
    const memory = kernels.allocate(4);
    device.createShaderModule({ label: 'wrong', code: 'fn main( {' });
    await expect(kernels.read([memory])).rejects.toMatchObject({
      name: 'DeviceError',
      reason: 'refused',
      message: expect.stringMatching(/^the GPU refused a shader or a command: .*WGSL.* \| .*"wrong".*$/),
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

  it('says so to whoever is waiting for it', async () => {
    const { device, kernels } = await open();
    const memory = kernels.allocate(4);
    const waiting = [kernels.read([memory]), kernels.sumOfSquares({ x: memory, length: 4 })].map((each) =>
      expect(each).rejects.toMatchObject({ name: 'DeviceError', reason: 'lost' }),
    );
    device.destroy();
    await Promise.all(waiting);
    expect(() => kernels.free(memory)).not.toThrow();
  });

  it('tells too little memory from all that comes of it', async () => {
    const { device, kernels } = await open();
    const memory = kernels.allocate(4);
    class GPUOutOfMemoryError extends Error {}
    device.onuncapturederror?.({ error: new GPUOutOfMemoryError('no 4 GB are left') });
    device.onuncapturederror?.({ error: new Error('an invalid buffer') });
    await expect(kernels.read([memory])).rejects.toMatchObject({
      name: 'DeviceError',
      reason: 'memory',
      message: 'the GPU has too little memory: no 4 GB are left',
    });
  });

  it('computes nothing more after it was given back', async () => {
    const { kernels } = await open();
    kernels.dispose();
    expect(() => kernels.allocate(4)).toThrow('these kernels were disposed of');
  });
});

/** A GPU of an implementation of WebGPU that opens no device. */
const adapterNamed = (vendor: string) => ({
  info: { vendor, architecture: 'old', device: '', description: '' },
  features: new Set(['subgroups', 'other']),
  limits: { maxBufferSize: 2, maxStorageBufferBindingSize: 1 },
  requestDevice: () => Promise.reject(new TypeError('maxStorageBuffersPerShaderStage is 4')),
});

it('a GPU that opens no device with the requested limits says so', async () => {
  const gpu = { requestAdapter: async () => adapterNamed('some') } as unknown as Gpu;
  await expect((await adapterOf(gpu)).open()).rejects.toMatchObject({
    name: 'DeviceError',
    reason: 'absent',
    message: 'some old cannot be opened: maxStorageBuffersPerShaderStage is 4',
  });
});

it('a second GPU is found where the one that takes the least power is another than the fastest', async () => {
  const gpuOf = (names: Readonly<Record<PowerPreference, string>>): Gpu =>
    ({ requestAdapter: async ({ powerPreference }) => adapterNamed(names[powerPreference]) }) as Gpu;
  const facts = { features: ['subgroups'], buffer: 2, binding: 1, software: false };
  const [fastest, ...others] = await adaptersOf(gpuOf({ 'high-performance': 'large', 'low-power': 'small' }));
  expect(fastest).toMatchObject({ ...facts, name: 'large old' });
  expect(others).toEqual([{ ...facts, name: 'small old' }]);
  expect(await adaptersOf(gpuOf({ 'high-performance': 'one', 'low-power': 'one' }))).toHaveLength(1);
});
