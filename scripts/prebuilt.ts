/**
 * `build [name...]`: compiles the addon for all systems that npm packages are installed on, with the cross-compiler of
 * Zig. PyPI has it as `ziglang` (it needs Python 3 with venv and the network once, or `ZIG` naming the program).
 * `check`: prints the addons that ran here and the ones that did not. In each kernel, an addon that runs on this
 * machine must compute the bits of a local build; the ARM addon is compared with AVX2 under an emulator (qemu-user).
 */
import { execFileSync } from 'node:child_process';
import { existsSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { checksum, shippedSources, sourceHash } from '@drmas/engine/internal/tensor/native/build';
import {
  PREBUILT_MANIFEST,
  type PrebuiltManifest,
  prebuiltDirectory,
} from '@drmas/engine/internal/tensor/native/prebuilt';
import { kernelFlags, nodeHeaders, unitsFor } from '@drmas/engine/internal/tensor/native/units';
import { cacheDirectory } from '@drmas/engine/platform';
import { everyKernelSources } from './support/run-program.js';

const ZIG_VERSION = '0.17.0';

/** Zig's targets by the names of the files. glibc 2.17 dates from 2012; macOS 11 is the first on ARM. */
const TARGETS: Readonly<Record<string, string>> = {
  'linux-x64-glibc': 'x86_64-linux-gnu.2.17',
  'linux-x64-musl': 'x86_64-linux-musl',
  'linux-arm64-glibc': 'aarch64-linux-gnu.2.17',
  'linux-arm64-musl': 'aarch64-linux-musl',
  'darwin-x64': 'x86_64-macos.11.0',
  'darwin-arm64': 'aarch64-macos.11.0',
  'win32-x64': 'x86_64-windows-gnu',
};

/** The command of Zig: `ZIG`, or a program of a Python environment in the cache, which is made if it is missing. */
function zig(): readonly string[] {
  if (process.env.ZIG) return process.env.ZIG.split(' ');
  const environment = join(cacheDirectory(), `zig-${ZIG_VERSION}`);
  const python = join(environment, 'bin', 'python');
  if (!existsSync(join(environment, 'complete'))) {
    execFileSync('python3', ['-m', 'venv', environment], { stdio: 'inherit' });
    execFileSync(python, ['-m', 'pip', 'install', '--quiet', `ziglang==${ZIG_VERSION}`], { stdio: 'inherit' });
    writeFileSync(join(environment, 'complete'), '');
  }
  return [python, '-m', 'ziglang'];
}

function run([program = '', ...first]: readonly string[], words: readonly string[], cwd: string): void {
  execFileSync(program, [...first, ...words], { cwd, stdio: 'inherit' });
}

/** Compiles and links one addon. It contains no path and no time, so that builds on other machines are equal. */
function compile(name: string, target: string, directory: string): Uint8Array {
  const [platform = '', architecture = ''] = name.split('-');
  const compiler = [...zig(), 'c++', '-target', target];
  const windows = platform === 'win32';
  const fit = (flag: string) => !(windows && flag === '-fPIC'); // there all code can lie anywhere
  const objects = unitsFor(architecture).map(({ source, object, flags, newer = [] }) => {
    const out = join(directory, `${name}-${object}`);
    run(compiler, [...flags.filter(fit), ...newer, '-g0', '-c', source, '-o', out], shippedSources());
    return out;
  });
  const link: string[] = [];
  if (platform === 'darwin') link.push('-dynamiclib', '-Wl,-undefined,dynamic_lookup');
  else link.push('-shared', '-pthread');
  if (windows) {
    const library = join(directory, 'node.lib');
    const definitions = join(directory, 'node.def');
    const { definitions: listed } = nodeHeaders();
    // Node lists the exports of node.exe in two files.
    const more = readFileSync(listed.replace('node_api', 'js_native_api'), 'utf8').split('\n').slice(2);
    writeFileSync(definitions, [readFileSync(listed, 'utf8').trim(), ...more].join('\n'));
    run(zig(), ['dlltool', '-m', 'i386:x86-64', '-D', 'node.exe', '-d', definitions, '-l', library], directory);
    link.push(library);
  }
  const addon = join(directory, `${name}.node`);
  run(compiler, [...link, '-s', ...objects, '-o', addon], directory);
  return readFileSync(addon);
}

async function build(names: readonly string[]): Promise<void> {
  const chosen = names.length === 0 ? Object.keys(TARGETS) : names;
  const wrong = chosen.find((name) => TARGETS[name] === undefined);
  if (wrong !== undefined) throw new Error(`${wrong} is unknown; expected one of ${Object.keys(TARGETS).join(', ')}`);
  const place = prebuiltDirectory();
  const sources = await sourceHash(shippedSources());
  const before = noted();
  const kept = before?.sources === sources ? before.files : {};
  const files: Record<string, string> = { ...kept };
  mkdirSync(place, { recursive: true });
  const directory = mkdtempSync(join(tmpdir(), 'drmas-prebuilt-'));
  try {
    for (const name of chosen) {
      const addon = compile(name, TARGETS[name] ?? '', directory);
      writeFileSync(join(place, `${name}.node`), addon);
      files[`${name}.node`] = checksum(addon);
      console.log(`prebuilt/${name}.node: ${addon.length} bytes`);
      const manifest: PrebuiltManifest = { sources, compiler: `zig ${ZIG_VERSION}`, files };
      writeFileSync(join(place, PREBUILT_MANIFEST), `${JSON.stringify(manifest, null, 2)}\n`);
    }
  } finally {
    rmSync(directory, { recursive: true });
  }
  for (const file of readdirSync(place))
    if (file !== PREBUILT_MANIFEST && files[file] === undefined) rmSync(join(place, file));
}

function noted(): PrebuiltManifest | undefined {
  const path = join(prebuiltDirectory(), PREBUILT_MANIFEST);
  return existsSync(path) ? (JSON.parse(readFileSync(path, 'utf8')) as PrebuiltManifest) : undefined;
}

/** Every kernel as Zig's compiler makes it, run here or under an emulator; a buffer a line. */
function computed(directory: string, target: string, isa: 'avx2' | 'portable', emulator: readonly string[]): string[] {
  const program = join(directory, target);
  const words = ['-target', target, '-static', '-O3', ...kernelFlags(isa), ...everyKernelSources(), '-o', program];
  run([...zig(), 'c++'], words, shippedSources());
  const [first = program, ...rest] = [...emulator, program, '3'];
  return execFileSync(first, rest, { encoding: 'utf8', maxBuffer: 2 ** 28 })
    .trim()
    .split('\n');
}

async function check(): Promise<void> {
  const manifest = noted();
  if (manifest === undefined) throw new Error('there is no prebuilt/manifest.json: npm run generate -- prebuilt');
  if (manifest.sources !== (await sourceHash(shippedSources())))
    throw new Error('prebuilt/ is older than its sources: npm run generate -- prebuilt');
  for (const [file, expected] of Object.entries(manifest.files))
    if (checksum(readFileSync(join(prebuiltDirectory(), file))) !== expected)
      throw new Error(`prebuilt/${file} differs from the file in the manifest`);
  const missing = Object.keys(TARGETS).filter((name) => manifest.files[`${name}.node`] === undefined);
  if (missing.length > 0) throw new Error(`prebuilt/ lacks ${missing.join(', ')}`);
  console.log(`prebuilt/ is whole: ${Object.keys(manifest.files).length} addons by ${manifest.compiler}`);
  const directory = mkdtempSync(join(tmpdir(), 'drmas-prebuilt-'));
  try {
    const here = computed(directory, 'x86_64-linux-musl', 'avx2', []);
    const arm = computed(directory, 'aarch64-linux-musl', 'portable', ['qemu-aarch64']);
    const differing = here.filter((line, i) => arm[i] !== line).map((line) => line.split(' ', 1)[0]);
    if (arm.length !== here.length || differing.length > 0)
      throw new Error(`ARM computes other bits than AVX2 in ${[...new Set(differing)].join(', ')}`);
    console.log(`Zig's kernels for ARM, emulated, and those for AVX2 write the same bits in ${here.length} buffers`);
  } finally {
    rmSync(directory, { recursive: true });
  }
}

const [command, ...names] = process.argv.slice(2);
try {
  if (command === 'build') await build(names);
  else if (command === 'check') await check();
  else throw new Error(`expected build or check, got ${command}`);
} catch (error) {
  console.error(error instanceof Error ? error.message : error);
  process.exitCode = 1;
}
