/** The work of a page of test/gpu/chromium.gpu.ts on the browser's own GPU. */

import type { Gpu } from '@drmas/webgpu';
import { checkDevice, type DeviceCheck } from '@drmas/webgpu/internal/kernels/check-device';
import { adapterOf } from '@drmas/webgpu/internal/kernels/open-device';
import { createWebgpuKernels } from '@drmas/webgpu/internal/kernels/webgpu';

declare const navigator: { readonly gpu?: Gpu };

export async function check(): Promise<DeviceCheck> {
  if (navigator.gpu === undefined) throw new Error('this page has no WebGPU');
  const adapter = await adapterOf(navigator.gpu);
  const kernels = createWebgpuKernels(await adapter.open(), adapter.name);
  try {
    return await checkDevice(kernels);
  } finally {
    kernels.dispose();
  }
}
