/** The work of a page of test/gpu/chromium.gpu.ts on the browser's own GPU. */
import { checkDevice, type DeviceCheck } from '@drmas/engine/internal/tensor/webgpu/check-device';
import { adapterOf } from '@drmas/engine/internal/tensor/webgpu/open-device';
import { createWebgpuKernels } from '@drmas/engine/internal/tensor/webgpu/webgpu';
import type { Gpu } from '@drmas/engine/kernels';

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
