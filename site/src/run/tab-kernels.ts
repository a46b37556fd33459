import kernelsAddress from '../../../native/drmas.wasm?url';
import { DeviceError } from '../../../src/core/errors.js';
import type { Recipe } from '../../../src/recipe/recipe.js';
import type { Kernels } from '../../../src/tensor/kernels.js';
import { createWasmKernels } from '../../../src/tensor/wasm/wasm.js';
import type { Gpu } from '../../../src/tensor/webgpu/webgpu-api.js';

/**
 * What computes a run of the page: WebAssembly, or the browser's GPU where the recipe asks for it.
 * @throws DeviceError where a GPU is asked for and the browser has none, or one that computes wrong
 */
export async function tabKernels({ backend }: Pick<Recipe, 'backend'>): Promise<Kernels> {
  if (backend.type === 'embedded' && backend.device === 'gpu') return gpuKernels();
  const response = await fetch(kernelsAddress);
  if (!response.ok) throw new Error(`the kernels could not be loaded: ${response.status} at ${kernelsAddress}`);
  return createWasmKernels(new Uint8Array(await response.arrayBuffer()));
}

async function gpuKernels(): Promise<Kernels> {
  const { gpu } = navigator as { readonly gpu?: Gpu };
  if (gpu === undefined) throw new DeviceError('absent', 'this browser has no WebGPU, or not for this page');
  const [{ openDeviceKernels }, { adapterOf }] = await Promise.all([
    import('../../../src/tensor/webgpu/open-kernels.js'),
    import('../../../src/tensor/webgpu/open-device.js'),
  ]);
  return openDeviceKernels(() => adapterOf(gpu));
}
