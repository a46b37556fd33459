import { basename } from 'node:path';
import type { VulkanParts } from '../base/platform.js';
import type { GpuReport } from '../engine/embedded.js';
import type { AdapterFacts } from '../engine/tensor.js';

/** The lines of `drmas doctor` about GPUs; the one in use comes first. */
export function gpuLines(gpu: GpuReport): readonly string[] {
  if ('reason' in gpu) return [`none: ${gpu.reason}`];
  const { adapter, check, others } = gpu;
  const facts = [
    ...factsOf(adapter),
    `kernels within ${check.gap.toExponential(0)} of the reference`,
    check.rowsKeepBits ? 'results do not depend on the batch' : 'results depend on the batch',
  ];
  return [
    `${adapter.name}: ${facts.join(', ')}`,
    ...others.map((other) => `not in use: ${other.name}: ${factsOf(other).join(', ')}`),
  ];
}

const mebibytes = (bytes: number) => `${Math.round(bytes / 2 ** 20)} MiB`;
const factsOf = ({ buffer, binding, features }: AdapterFacts) => [
  `buffers of ${mebibytes(buffer)}`,
  `bindings of ${mebibytes(binding)}`,
  ...features,
];

/** File names of drivers that compute on the CPU. */
const SOFTWARE = /lvp|llvmpipe|swiftshader/i;

const LOADER =
  'the Vulkan loader libvulkan.so.1 is missing (Debian, Ubuntu: apt install libvulkan1; Fedora: dnf install ' +
  'vulkan-loader; Arch: pacman -S vulkan-icd-loader)';
const DRIVER =
  'For NVIDIA install its driver with Vulkan (Debian: nvidia-vulkan-icd; Ubuntu: libnvidia-gl-VERSION; in a container ' +
  'NVIDIA_DRIVER_CAPABILITIES=all), for AMD and Intel mesa-vulkan-drivers';

/**
 * The missing step before a GPU can compute here; undefined if one computes.
 * @param vulkan Undefined on systems whose GPUs do not use Vulkan
 */
export function gpuAdvice(
  gpu: GpuReport,
  vulkan: VulkanParts | undefined,
  system: NodeJS.Platform,
): string | undefined {
  if ('reason' in gpu && /npm install/.test(gpu.reason)) return 'install that package in the project that has drmas';
  if ('adapter' in gpu && !gpu.adapter.software) return undefined;
  if (vulkan === undefined) return elsewhere(system);
  const { loader, drivers } = vulkan;
  if (loader === undefined && 'reason' in gpu) return LOADER;
  if (drivers.length === 0) return `Vulkan has its loader but no driver: vulkan/icd.d has no file. ${DRIVER}`;
  const names = drivers.map((driver) => basename(driver)).join(', ');
  if (drivers.every((driver) => SOFTWARE.test(driver)))
    return `the only driver (${names}) computes on the CPU. ${DRIVER}`;
  return (
    `the drivers (${names}) find no GPU: check that the device is visible (ls /dev/nvidia* /dev/dri) and that this ` +
    'user may open it (groups video and render; a container needs --gpus all)'
  );
}

const elsewhere = (system: NodeJS.Platform) =>
  system === 'darwin'
    ? 'macOS includes Metal, but a session without a screen or a virtual machine may have no GPU'
    : 'install the GPU driver of NVIDIA, AMD or Intel, which includes Direct3D 12';
