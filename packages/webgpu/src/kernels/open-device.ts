import { DeviceError, messageOf } from '@drmas/engine/errors';
import type { Gpu, GpuAdapterInfo, GpuDevice, PowerPreference } from './webgpu-api.js';

/** A driver's description of a GPU. */
export interface AdapterFacts {
  readonly name: string;
  /** Features that the kernels could use, of those that the adapter has. */
  readonly features: readonly string[];
  /** Bytes of one buffer, and of one binding, at most. */
  readonly buffer: number;
  readonly binding: number;
  /** Whether it computes on the processor. */
  readonly software: boolean;
}

/** An adapter, and the features and limits to request from its device. */
export interface FoundAdapter extends AdapterFacts {
  open(): Promise<GpuDevice>;
}

/** Features that would make products faster. */
const USEFUL = /^(shader-f16|subgroups|chromium-experimental-subgroup-matrix)$/;

/**
 * The GPU that WebGPU prefers on this machine, by the package `webgpu` (Dawn). With `null` it is a GPU that executes
 * nothing, which shows the cost of encoding.
 * @throws DeviceError (`absent`) when the package is not installed, does not run here, or no driver has an adapter
 */
export async function findAdapter(backend?: 'null'): Promise<FoundAdapter> {
  return adapterOf(await openDawn(backend === undefined ? [] : [`backend=${backend}`]));
}

/**
 * The GPUs of this machine that WebGPU tells apart, first the one that computes.
 * @throws DeviceError as `findAdapter`
 */
export const findAdapters = async (): Promise<FoundAdapters> => adaptersOf(await openDawn([]));

/** The fastest GPU, and the GPU that takes the least power if it has another name. */
type FoundAdapters = readonly [FoundAdapter, ...AdapterFacts[]];

export async function adaptersOf(gpu: Gpu): Promise<FoundAdapters> {
  const fastest = await adapterOf(gpu);
  const { open: _, ...frugal } = await adapterOf(gpu, 'low-power');
  return frugal.name === fastest.name ? [fastest] : [fastest, frugal];
}

/** An adapter of an implementation of WebGPU, as `navigator.gpu`. @throws DeviceError if it has none */
export async function adapterOf(
  gpu: Gpu,
  powerPreference: PowerPreference = 'high-performance',
): Promise<FoundAdapter> {
  const adapter = await gpu.requestAdapter({ powerPreference });
  if (adapter === null) throw new DeviceError('absent', 'no driver offers a GPU (Vulkan, Metal or Direct3D 12)');
  const { info, features, limits } = adapter;
  return {
    name: nameOf(info),
    features: [...features].filter((feature) => USEFUL.test(feature)).sort(),
    buffer: limits.maxBufferSize,
    binding: limits.maxStorageBufferBindingSize,
    software: /swiftshader|llvmpipe|lavapipe|microsoft basic/i.test(`${nameOf(info)} ${info.architecture}`),
    open: async () => {
      const { maxBufferSize, maxStorageBufferBindingSize } = limits;
      try {
        const device = await adapter.requestDevice({ requiredLimits: { maxBufferSize, maxStorageBufferBindingSize } });
        instances.set(device, gpu);
        return device;
      } catch (error) {
        throw new DeviceError('absent', `${nameOf(info)} cannot be opened: ${messageOf(error)}`);
      }
    },
  };
}

/** Dawn's instance lives as long as its devices. */
const instances = new WeakMap<GpuDevice, Gpu>();

const nameOf = ({ description, vendor, architecture, device }: GpuAdapterInfo) =>
  [device || `${vendor} ${architecture}`.trim(), description && `(${description})`].filter(Boolean).join(' ');

/** Named by a variable, because whoever compiles or bundles drmas need not have the package. */
const PACKAGE: string = 'webgpu';

async function openDawn(flags: string[]): Promise<Gpu> {
  try {
    const { create } = (await import(PACKAGE)) as { create(flags: readonly string[]): Gpu };
    return create(flags);
  } catch (error) {
    // If the package is missing, Node's message is about paths.
    const missing = error instanceof Error && 'code' in error && error.code === 'ERR_MODULE_NOT_FOUND';
    throw new DeviceError('absent', `it needs \`npm install webgpu\`${missing ? '' : `: ${messageOf(error)}`}`);
  }
}
