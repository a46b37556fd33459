/**
 * Disposable installations of the peers below the cache directory: a Python environment and an npm directory, created
 * once for each list of requirements and removed by deleting the directory. No part of this package depends on them.
 */
import { spawn, spawnSync } from 'node:child_process';
import { access, mkdir, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import type { Device } from '@drmas/engine';
import { contentHash } from '@drmas/engine/disk';
import { cacheDirectory } from '@drmas/engine/platform';

/** The versions for which the targets were set. */
const TORCH = '2.13.0';
const GPU_PACKAGES = ['transformers==5.23.0', 'peft==0.21.2', 'accelerate==1.15.0'];
const PYTHON_PACKAGES = [...GPU_PACKAGES, 'trl==1.16.0', 'datasets==5.2.0'];
/** The packages that the paper's estimator needs in addition to PyTorch. */
export const ARRAYS = ['numpy==2.4.6'];
const LLAMA = '3.22.1';
const CPU_WHEELS = 'https://download.pytorch.org/whl/cpu';

/** The package with llama.cpp prebuilt for this machine's processor, without the builds for graphics cards. */
const LLAMA_BUILD: Readonly<Record<string, string>> = {
  'linux x64': 'linux-x64',
  'linux arm64': 'linux-arm64',
  'darwin arm64': 'mac-arm64-metal',
  'darwin x64': 'mac-x64',
};

export const peersDirectory = (): string => join(cacheDirectory(), 'bench-peers');

/** The directory of the peers' scripts. */
export const script = (name: string): string => fileURLToPath(new URL(name, import.meta.url));

/** The environment variables that keep the Python peers to their threads and off the network. */
export const pythonVariables = (threads: number): Readonly<Record<string, string>> => ({
  OMP_NUM_THREADS: `${threads}`,
  PYTHONDONTWRITEBYTECODE: '1',
  TOKENIZERS_PARALLELISM: 'false',
  HF_HUB_OFFLINE: '1',
  TRANSFORMERS_VERBOSITY: 'error',
});

/**
 * The interpreter of an environment with PyTorch and, by default, transformers and TRL. @throws with the installer's
 * last words
 */
export async function pythonEnvironment(
  say: (message: string) => void,
  packages: readonly string[] = PYTHON_PACKAGES,
  device: Device = 'cpu',
): Promise<string> {
  const directory = await once('python', [TORCH, packages, ...(device === 'gpu' ? [device] : [])], async (place) => {
    const names = packages.map((name) => name.replace(/==.*/, '')).join(', ');
    say(`installing PyTorch, ${names} into a throw-away environment (some minutes, some GB)`);
    await run('python3', ['-m', 'venv', place]);
    const pip = (...args: string[]) =>
      run(join(place, 'bin', 'python'), ['-m', 'pip', 'install', '--quiet', '--disable-pip-version-check', ...args]);
    // The wheels without CUDA if they are available, else the ones of the default registry.
    const small = () =>
      pip(`torch==${TORCH}+cpu`, '--extra-index-url', CPU_WHEELS, '--retries', '0', '--timeout', '15');
    if (device === 'gpu') await pip(`torch==${TORCH}`);
    else await small().catch(() => pip(`torch==${TORCH}`));
    await pip(...packages);
  });
  return join(directory, 'bin', 'python');
}

/** The device of the peers of a bench. */
interface PeerOptions {
  readonly device: Device;
  readonly peerDevice: Device;
  /** An interpreter that has the packages of the peers. */
  readonly python: string | undefined;
}

/**
 * The interpreter for peers beside this engine on a device; on a GPU with PEFT, and with PyTorch as it comes for the
 * system. @throws if PyTorch computes on no GPU here, or with the last lines of the installer's output
 */
export async function pythonFor(
  { device, peerDevice, python }: PeerOptions,
  say: (message: string) => void,
): Promise<string> {
  if (python !== undefined) return python;
  if (device === 'cpu') return pythonEnvironment(say);
  if (peerDevice === 'gpu') requireTorchGpu();
  return pythonEnvironment(say, GPU_PACKAGES, peerDevice);
}

/** Looks for a GPU that PyTorch computes on before gigabytes are installed. */
function requireTorchGpu(): void {
  if (process.platform === 'darwin' && process.arch === 'arm64') return;
  const { status } = spawnSync('nvidia-smi', ['-L'], { stdio: 'ignore' });
  if (status !== 0) throw new Error('no GPU for PyTorch: nvidia-smi finds none, and this is no Mac with Metal');
}

/** The directory of the package node-llama-cpp. @throws with the installer's last words */
export async function llamaPackage(say: (message: string) => void): Promise<string> {
  const build = LLAMA_BUILD[`${process.platform} ${process.arch}`];
  if (build === undefined) throw new Error(`node-llama-cpp has no build for ${process.platform} ${process.arch}`);
  const directory = await once('llama', [LLAMA, build], async (place) => {
    say('installing node-llama-cpp into a throw-away directory');
    await mkdir(place, { recursive: true });
    await writeFile(join(place, 'package.json'), JSON.stringify({ private: true }));
    const packages = [`node-llama-cpp@${LLAMA}`, `@node-llama-cpp/${build}@${LLAMA}`];
    const flags = ['--omit=optional', '--ignore-scripts', '--no-audit', '--no-fund', '--loglevel=error'];
    await run('npm', ['install', ...flags, ...packages], place);
  });
  return join(directory, 'node_modules', 'node-llama-cpp');
}

/** Creates a directory whose last written file marks it as complete. */
async function once(kind: string, what: unknown, make: (directory: string) => Promise<void>): Promise<string> {
  const directory = join(peersDirectory(), `${kind}-${contentHash(what).slice(0, 12)}`);
  const complete = join(directory, '.complete');
  const done = await access(complete).then(
    () => true,
    () => false,
  );
  if (!done) {
    await rm(directory, { recursive: true, force: true });
    await mkdir(peersDirectory(), { recursive: true });
    await make(directory);
    await writeFile(complete, '');
  }
  return directory;
}

function run(command: string, args: readonly string[], cwd?: string): Promise<void> {
  return new Promise((resolve, reject) => {
    const child = spawn(command, args, { cwd, stdio: ['ignore', 'ignore', 'pipe'] });
    let stderr = '';
    child.stderr.on('data', (data: Buffer) => {
      stderr = (stderr + data.toString()).slice(-2000);
    });
    child.on('error', reject);
    child.on('close', (code) => {
      const words = stderr.trim().split('\n').slice(-3).join(' | ');
      if (code === 0) resolve();
      else reject(new Error(`${command} ${args[0]} ended with ${code}: ${words}`));
    });
  });
}
