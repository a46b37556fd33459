import { basename } from 'node:path';
import type { VulkanParts } from '../platform/vulkan-drivers.js';
import type { GpuReport } from '../tensor/webgpu/inspect-gpu.js';
import type { AdapterFacts } from '../tensor/webgpu/open-device.js';

/** What `drmas doctor` says of the GPUs, the one that computes first. */
export function gpuLines(gpu: GpuReport): readonly string[] {
  if ('reason' in gpu) return [`none: ${gpu.reason}`];
  const { adapter, check, others } = gpu;
  const facts = [
    ...factsOf(adapter),
    `kernels within ${check.gap.toExponential(0)} of the plain ones`,
    check.rowsKeepBits ? 'rows keep their bits' : 'rows do not keep their bits',
  ];
  return [
    `${adapter.name}: ${facts.join(', ')}`,
    ...others.map((other) => `not computed on: ${other.name}: ${factsOf(other).join(', ')}`),
  ];
}

const mebibytes = (bytes: number) => `${Math.round(bytes / 2 ** 20)} MiB`;
const factsOf = ({ buffer, binding, features }: AdapterFacts) => [
  `buffers of ${mebibytes(buffer)}`,
  `bindings of ${mebibytes(binding)}`,
  ...features,
];

/** Drivers that compute on the processor, by the names of their files. */
const SOFTWARE = /lvp|llvmpipe|swiftshader/i;

const LOADER =
  "Vulkan's loader is missing, libvulkan.so.1 (Debian, Ubuntu: apt install libvulkan1; Fedora: dnf install " +
  'vulkan-loader; Arch: pacman -S vulkan-icd-loader)';
const DRIVER =
  'NVIDIA: its driver with Vulkan (Debian: nvidia-vulkan-icd; Ubuntu: libnvidia-gl-VERSION; in a container ' +
  'NVIDIA_DRIVER_CAPABILITIES=all); AMD, Intel: mesa-vulkan-drivers';

/**
 * The step that is missing before a GPU computes here, and how to go on; undefined where one does.
 * @param vulkan Undefined where GPUs are not reached through Vulkan
 */
export function gpuAdvice(
  gpu: GpuReport,
  vulkan: VulkanParts | undefined,
  system: NodeJS.Platform,
): string | undefined {
  if ('reason' in gpu && /npm install/.test(gpu.reason)) return 'install the package in the project that has drmas';
  if ('adapter' in gpu && !gpu.adapter.software) return undefined;
  if (vulkan === undefined) return elsewhere(system);
  const { loader, drivers } = vulkan;
  if (loader === undefined && 'reason' in gpu) return LOADER;
  if (drivers.length === 0) return `the loader is there, and no driver: no file in vulkan/icd.d. ${DRIVER}`;
  const names = drivers.map((driver) => basename(driver)).join(', ');
  if (drivers.every((driver) => SOFTWARE.test(driver)))
    return `there is a driver in software alone (${names}), which computes on the processor. ${DRIVER}`;
  return (
    `drivers are there (${names}), and none offers a GPU of its own: see whether the device is visible ` +
    '(ls /dev/nvidia* /dev/dri) and this user may open it (groups video and render; containers want --gpus all)'
  );
}

const elsewhere = (system: NodeJS.Platform) =>
  system === 'darwin'
    ? 'Metal comes with macOS: a session without a screen, or a virtual machine, may have none'
    : 'Direct3D 12 comes with the driver of the GPU: install it from NVIDIA, AMD or Intel';
