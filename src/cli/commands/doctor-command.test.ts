import { mkdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { PythonReport } from '@drmas/engine/node';
import { findVulkan } from '@drmas/engine/platform';
import type { GpuReport } from '@drmas/webgpu';
import { describe, expect, it } from 'vitest';
import { temporaryRoot } from '../../../test/support/tiny-run.js';
import { gpuAdvice, gpuLines, torchLines } from './doctor-command.js';

const root = temporaryRoot();
const none: GpuReport = { reason: 'no driver offers a GPU' };
const adapter = (software: boolean): GpuReport => ({
  adapter: { name: 'x', features: [], buffer: 1, binding: 1, software },
  check: { gap: 0, rowsKeepBits: true },
  others: [],
});
const loader = '/usr/lib/libvulkan.so.1';

it('GPUs are named with limits and features, the one that computes first', () => {
  const facts = { features: ['shader-f16'], buffer: 2 ** 32, binding: 2 ** 27, software: false };
  const check = { gap: 1.2e-6, rowsKeepBits: true };
  const others = [{ ...facts, name: 'small', features: [] }];
  expect(gpuLines({ adapter: { ...facts, name: 'large' }, check, others })).toEqual([
    'large: buffers of 4096 MiB, bindings of 128 MiB, shader-f16, kernels within 1e-6 of the reference, ' +
      'results do not depend on the batch',
    'not in use: small: buffers of 4096 MiB, bindings of 128 MiB',
  ]);
  expect(gpuLines(none)).toEqual(['none: no driver offers a GPU']);
});

describe('the lines about PyTorch', () => {
  const card = { name: 'Card', memory: 24e9, free: 23e9, capability: [8, 9], bandwidth: 1e12, error: null } as const;
  const versions = { python: 'python3', version: '3.12.1', torch: '2.9.0+cu126', cuda: '12.6' };
  const report = { ...versions, cards: [card], mps: false, error: null, uncompiled: null };
  const lines = (changes: object) => torchLines({ ...report, ...changes } as PythonReport, {});

  it('name the versions and the cards', () => {
    expect(lines({})).toEqual([
      '2.9.0+cu126 in python3 3.12.1',
      'cuda:0 Card: 23.0 GB of 24.0 GB free, copies 1.00 TB/s',
    ]);
  });

  it('say what `train` would say is missing', () => {
    expect(torchLines(null, { DRMAS_PYTHON: '/no/python' }).join()).toMatch(
      /^none: .*\/no\/python, which is none.*pip/,
    );
    for (const [changes, problem] of [
      [{ torch: '2.7.1+cu126' }, /needs PyTorch 2\.8 or later, and python3 has 2\.7\.1/],
      [{ version: '3.9.18' }, /needs Python 3\.10 or later, and python3 is 3\.9\.18/],
      [{ torch: null, error: "ModuleNotFoundError: No module named 'torch'" }, /^none: python3 has no PyTorch: uv pip/],
      [{ cards: [], cuda: null }, /is a build without CUDA/],
      [{ cards: [card, { ...card, error: 'all CUDA-capable devices are busy' }] }, /cannot compute on Card: all CUDA/],
    ] as const)
      expect(lines(changes).at(-1)).toMatch(problem);
  });
});

describe('what is missing before a GPU computes', () => {
  it.each<[string, GpuReport, Parameters<typeof gpuAdvice>[1], RegExp]>([
    ['the package', { reason: 'it needs `npm install webgpu`' }, { loader, drivers: [] }, /install that package/],
    ['the loader', none, { loader: undefined, drivers: [] }, /libvulkan\.so\.1 .*apt install libvulkan1/],
    ['a driver', none, { loader, drivers: [] }, /no driver: .*NVIDIA.*mesa-vulkan-drivers/],
    [
      'a driver for a GPU',
      adapter(true),
      { loader, drivers: ['/etc/vulkan/icd.d/lvp_icd.json'] },
      /the only driver \(.*\) computes on the CPU/,
    ],
    ['the device', none, { loader, drivers: ['/etc/vulkan/icd.d/nvidia_icd.json'] }, /nvidia_icd\.json.*\/dev\/nvidia/],
  ])('%s', (_, gpu, vulkan, expected) => {
    expect(gpuAdvice(gpu, vulkan, 'linux')).toMatch(expected);
  });

  it('is nothing where one does, and what the system brings elsewhere', () => {
    expect(gpuAdvice(adapter(false), { loader, drivers: [] }, 'linux')).toBeUndefined();
    expect(gpuAdvice(none, undefined, 'darwin')).toMatch(/Metal/);
    expect(gpuAdvice(none, undefined, 'win32')).toMatch(/Direct3D 12/);
  });
});

it('loader and drivers are looked for where the environment says', async () => {
  const [library, data] = [join(root, 'lib'), join(root, 'data')];
  await mkdir(join(data, 'vulkan', 'icd.d'), { recursive: true });
  await mkdir(library);
  for (const file of ['some_icd.json', 'readme']) await writeFile(join(data, 'vulkan', 'icd.d', file), '');
  await writeFile(join(library, 'libvulkan.so.1'), '');
  const some = join(data, 'vulkan', 'icd.d', 'some_icd.json');
  const here = await findVulkan({ LD_LIBRARY_PATH: library, XDG_DATA_HOME: data });
  expect(here.loader).toBe(join(library, 'libvulkan.so.1'));
  expect(here.drivers).toContain(some);
  expect(here.drivers.join()).not.toContain('readme');
  expect((await findVulkan({ VK_DRIVER_FILES: `${some}:/nowhere.json` })).drivers).toEqual([some]);
});
