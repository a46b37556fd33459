import { mkdir, mkdtemp, rm } from 'node:fs/promises';
import { arch, availableParallelism, cpus, platform, totalmem } from 'node:os';
import { basename, join, resolve } from 'node:path';
import { messageOf } from '@drmas/engine/errors';
import { describeModel, type ModelOnDisk, modelsOnDisk } from '@drmas/engine/formats';
import { byteText, type TorchDevice } from '@drmas/engine/host';
import type { Bfloat16Products } from '@drmas/engine/kernels';
import {
  deviceProblem,
  inspectNative,
  lookForTorch,
  type PythonReport,
  pythonProblem,
  selectKernels,
} from '@drmas/engine/node';
import {
  cacheDirectory,
  findVulkan,
  kernelThreads,
  nodeFiles,
  packageVersion,
  type VulkanParts,
} from '@drmas/engine/platform';
import { type AdapterFacts, type GpuReport, inspectGpu } from '@drmas/webgpu';
import { type CommandContext, jsonText } from '../command-context.js';
import { defineCommand } from '../define-command.js';
import { toggle } from '../flags.js';
import { screenOf } from '../reporter/screen.js';
import { labelled, rowsOf } from '../reporter/start-printer.js';
import { cache } from './upkeep/cache-command.js';
import { server } from './upkeep/server-command.js';
import { verify } from './upkeep/verify-command.js';

interface Diagnosis {
  readonly drmas: string;
  readonly node: string;
  readonly platform: string;
  readonly cpu: string;
  readonly cores: number;
  readonly memoryGiB: number;
  readonly kernels: string;
  readonly isa: string;
  readonly narrowProducts: Bfloat16Products;
  readonly threads: number;
  /** The name of the prebuilt addon in use, or the reason why there is none. */
  readonly prebuilt: string;
  /** The reason why slower kernels are in use; null for the fastest ones. */
  readonly notice: string | null;
  readonly compiler: string;
  readonly gpu: GpuReport;
  /** On Linux, the Vulkan loader and drivers, which WebGPU needs. */
  readonly vulkan: VulkanParts | null;
  readonly gpuAdvice: string | null;
  /** Python and its PyTorch, which `--device cuda` needs; null without Python. */
  readonly python: PythonReport | null;
  readonly cache: string;
  readonly cacheWritable: boolean;
  readonly workingDirectoryWritable: boolean;
  readonly models: readonly (ModelOnDisk & {
    /** Why drmas cannot read it; null if it can. */ readonly problem: string | null;
  })[];
}

export const doctor = defineCommand({
  name: 'doctor',
  description: 'check this machine: kernels, compiler, GPU, cache, models; check a run, or a Tinker server',
  details:
    'shows the kernels, compiler, GPU and cache of this machine and the models that Ollama and LM Studio have here, whose names `checkpoint` takes, and compiles the kernels if necessary. `drmas doctor verify RUN` looks for damaged files of a run, `drmas doctor cache` lists cached data, `drmas doctor server URL` checks a server of the Tinker protocol',
  arguments: [],
  flags: { json: toggle('print the facts as JSON') },
  examples: [
    'drmas doctor',
    'drmas doctor verify runs/first',
    'drmas doctor cache clear',
    'drmas doctor server http://127.0.0.1:8000',
  ],
  async run(context, _, flags) {
    const diagnosis = await diagnose(context);
    if (flags.json === true) context.stdout.write(`${jsonText(diagnosis)}\n`);
    else {
      const { width } = screenOf(context.stdout, context.environment);
      for (const line of labelled(rows(diagnosis, context.environment), width)) context.stdout.write(`${line}\n`);
    }
    return 0;
  },
  subcommands: [verify, cache, server],
});

async function diagnose(context: CommandContext): Promise<Diagnosis> {
  const { environment } = context;
  const onProgress = (message: string) => void context.stderr.write(`${message}\n`);
  // The kernels of most runs, which are in float32. Those for bfloat16 are compiled when a run needs them.
  const request = { threads: kernelThreads(), bfloat16Products: 'widened' } as const;
  const { kernels, notice } = await selectKernels({ ...request, environment, onProgress });
  const { name, isa, bfloat16Products, fastestBfloat16Products: narrowProducts = bfloat16Products, threads } = kernels;
  kernels.dispose();
  const native = await inspectNative({ environment });
  const cache = cacheDirectory(environment);
  return {
    drmas: packageVersion(),
    node: process.versions.node,
    platform: `${platform()} ${arch()}`,
    cpu: cpus()[0]?.model.trim() ?? 'unknown',
    cores: availableParallelism(),
    memoryGiB: Math.round((totalmem() / 2 ** 30) * 10) / 10,
    kernels: name,
    isa,
    narrowProducts,
    threads,
    prebuilt: 'name' in native.prebuilt ? native.prebuilt.name : `none: ${native.prebuilt.reason}`,
    notice: notice ?? null,
    compiler: native.compiler ? `${native.compiler.command} (${native.compiler.version})` : `none: ${native.reason}`,
    ...(await gpuFacts(environment)),
    python: (await lookForTorch(environment, { measure: true })) ?? null,
    cache,
    cacheWritable: await isWritable(cache),
    workingDirectoryWritable: await isWritable('.'),
    models: await Promise.all((await modelsOnDisk(environment)).map(withProblem)),
  };
}

/** Reads a model's header, but no weights. */
async function withProblem(model: ModelOnDisk): Promise<Diagnosis['models'][number]> {
  try {
    await describeModel(nodeFiles, model.file);
    return { ...model, problem: null };
  } catch (error) {
    return { ...model, problem: messageOf(error).replace(`${model.file}: `, '') };
  }
}

async function gpuFacts(environment: NodeJS.ProcessEnv): Promise<Pick<Diagnosis, 'gpu' | 'vulkan' | 'gpuAdvice'>> {
  const vulkan = platform() === 'linux' ? await findVulkan(environment) : undefined;
  // Without the loader there is no GPU to find, and Dawn would write lines about it into the terminal.
  const isLoaderMissing = vulkan !== undefined && vulkan.loader === undefined;
  const gpu: GpuReport = isLoaderMissing ? { reason: 'no Vulkan' } : await inspectGpu();
  return { gpu, vulkan: vulkan ?? null, gpuAdvice: gpuAdvice(gpu, vulkan, platform()) ?? null };
}

/** Whether a directory is writable. It writes a file: the permissions alone do not tell. */
async function isWritable(directory: string): Promise<boolean> {
  try {
    await mkdir(directory, { recursive: true });
    await rm(await mkdtemp(join(directory, '.drmas-')), { recursive: true });
    return true;
  } catch {
    return false;
  }
}

/** How products in bfloat16 are computed (`policies.NAME.precision`), by `Kernels.bfloat16Products`. */
const PRODUCTS: Readonly<Record<Bfloat16Products, string>> = {
  amx: 'products by AMX',
  'amx-emulated': 'products by AMX, emulated',
  'avx512-bf16': 'products by AVX512-BF16',
  widened: 'no faster than float32: this processor has no bfloat16 instruction',
};

function rows(diagnosis: Diagnosis, environment: NodeJS.ProcessEnv): string[][] {
  const writable = (yes: boolean) => (yes ? '' : ' (not writable)');
  return [
    ['drmas', diagnosis.drmas],
    ['node', `${diagnosis.node} on ${diagnosis.platform}`],
    ['cpu', `${diagnosis.cpu}, ${diagnosis.cores} cores`],
    ['memory', `${diagnosis.memoryGiB} GiB`],
    ['kernels', `${diagnosis.kernels} (${diagnosis.isa}), threads: ${diagnosis.threads}`],
    ['bfloat16', PRODUCTS[diagnosis.narrowProducts]],
    ...(diagnosis.notice === null ? [] : [['', diagnosis.notice]]),
    ['prebuilt', diagnosis.prebuilt],
    ['compiler', diagnosis.compiler],
    ...rowsOf('gpu', [...gpuLines(diagnosis.gpu), ...(diagnosis.gpuAdvice === null ? [] : [diagnosis.gpuAdvice])]),
    ...rowsOf('pytorch', torchLines(diagnosis.python, environment)),
    ['cache', `${diagnosis.cache}${writable(diagnosis.cacheWritable)}`],
    ['runs', `${resolve('runs')}${writable(diagnosis.workingDirectoryWritable)}`],
    ...rowsOf('models', diagnosis.models.map(modelLine)),
  ];
}

const modelLine = ({ name, program, bytes, problem }: Diagnosis['models'][number]) =>
  `${name} (${program}, ${byteText(bytes)})${problem === null ? '' : `: not read, ${problem}`}`;

/** The lines of `drmas doctor` about PyTorch: the cards that `--device cuda` finds, or the reason why it finds none. */
export function torchLines(python: PythonReport | null, environment: NodeJS.ProcessEnv): readonly string[] {
  const ofPython = pythonProblem(python ?? undefined, environment);
  if (python === null || python.torch === null) return [`none: ${ofPython}`];
  const { torch, version, python: program, cards, mps } = python;
  const gigabytes = (bytes: number) => `${(bytes / 1e9).toFixed(1)} GB`;
  const devices = cards.length === 0 ? (['cuda'] as const) : cards.map((_, i) => `cuda:${i}` as TorchDevice);
  const ofDevices = mps ? [] : devices.map((device) => deviceProblem(python, device));
  const problems = ofPython === undefined ? new Set(ofDevices) : [ofPython];
  return [
    `${torch} in ${program} ${version}`,
    ...cards.map(({ name, memory, free, bandwidth }, i) => {
      const speed = bandwidth === null ? '' : `, copies ${(bandwidth / 1e12).toFixed(2)} TB/s`;
      return `cuda:${i} ${name}: ${gigabytes(free)} of ${gigabytes(memory)} free${speed}`;
    }),
    ...(mps ? ['mps: the GPU of this Mac'] : []),
    ...[...problems].filter((problem) => problem !== undefined),
  ];
}

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
