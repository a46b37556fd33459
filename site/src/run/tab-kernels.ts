import kernelsAddress from '../../../native/drmas.wasm?url';
import { DeviceError } from '../../../src/base/errors.js';
import type { Gpu, Kernels } from '../../../src/engine/tensor.js';
import { createWasmKernels } from '../../../src/engine/tensor.js';
import type { Recipe } from '../../../src/method/recipe.js';

/**
 * The kernels for a run of the page: WebAssembly, or the browser's GPU if the recipe requests it.
 * @throws DeviceError if a GPU is requested and the browser has none, or has one that computes wrong results
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
    import('../../../src/engine/tensor/webgpu/open-kernels.js'),
    import('../../../src/engine/tensor/webgpu/open-device.js'),
  ]);
  return openDeviceKernels(() => adapterOf(gpu));
}
