/**
 * `build`: compiles native/wasm.cpp to native/drmas.wasm, which is committed and ships, and notes beside it what it
 * was made from. `check`: fails unless the committed file is the noted one and its sources and flags are still those;
 * where the very compiler that made it is installed, it must also come out byte for byte.
 */
import { execFileSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';

const native = fileURLToPath(new URL('../packages/engine/native/', import.meta.url));
const MODULE = join(native, 'drmas.wasm');
const NOTE = join(native, 'drmas.wasm.json');

const COMPILE = [
  ...['--target=wasm32', '-std=c++17', '-O3', '-DDRMAS_ISA=simd128', '-ffp-contract=off', '-fno-math-errno'],
  // 128-bit vectors, memory.copy and memory.fill, atomics for the threads, and a stack pointer that JavaScript sets.
  // All in Node 20 and in browsers since 2021.
  ...['-msimd128', '-mbulk-memory', '-matomics', '-mmutable-globals', '-ftls-model=local-exec'],
  // No operating system, no C++ library but native/wasm; buffers that live as long as the instance are never destroyed.
  ...['-ffreestanding', '-nostdlib', '-nostdinc++', '-isystem', 'wasm', '-fno-exceptions', '-fno-rtti'],
  ...['-fno-threadsafe-statics', '-fno-c++-static-destructors', '-fvisibility=hidden', '-Wall', '-Wextra'],
];
const LINK = [
  ...['--no-entry', '--strip-all', '--import-undefined', '--export=__heap_base'],
  // For further threads: a stack and variables of their own. Data is initialised by the first instance alone.
  ...['--export=__stack_pointer', '--export=__wasm_init_tls', '--export=__tls_size', '--export=__tls_align'],
  ...['--import-memory', '--shared-memory', '--max-memory=4294967296', '--stack-first', '-z', 'stack-size=262144'],
];

interface Note {
  readonly compiler: string;
  /** SHA-256 of the module. */
  readonly module: string;
  /** SHA-256 of the sources and flags. */
  readonly sources: string;
}

/** `CLANG` and `WASM_LD` name others, as clang++-19. */
const clang = process.env.CLANG ?? 'clang++';
const linker = process.env.WASM_LD ?? 'wasm-ld';

const sha256 = (content: string | Uint8Array) => createHash('sha256').update(content).digest('hex');

function sources(): string {
  const files = [
    ...readdirSync(native, { recursive: true, encoding: 'utf8' }).filter((name) => name.endsWith('.h')),
    'wasm.cpp',
    ...readdirSync(join(native, 'wasm')).map((name) => `wasm/${name}`),
  ].sort();
  return sha256(
    JSON.stringify([COMPILE, LINK, ...files.map((name) => [name, readFileSync(join(native, name), 'utf8')])]),
  );
}

/** First lines of the versions of compiler and linker; undefined if one does not run. */
function compiler(): string | undefined {
  try {
    return [clang, linker]
      .map((program) => execFileSync(program, ['--version'], { encoding: 'utf8', stdio: 'pipe' }).split('\n')[0])
      .join(', ');
  } catch {
    return undefined;
  }
}

function compile(): Uint8Array {
  const directory = mkdtempSync(join(tmpdir(), 'drmas-wasm-'));
  try {
    const object = join(directory, 'wasm.o');
    const module = join(directory, 'drmas.wasm');
    execFileSync(clang, [...COMPILE, '-c', 'wasm.cpp', '-o', object], { cwd: native, stdio: 'inherit' });
    execFileSync(linker, [...LINK, '-o', module, object], { stdio: 'inherit' });
    return readFileSync(module);
  } finally {
    rmSync(directory, { recursive: true });
  }
}

function build(): string {
  const installed = compiler();
  if (installed === undefined) throw new Error(`needs ${clang} and ${linker} (Debian, Ubuntu: apt install clang lld)`);
  const module = compile();
  const note: Note = { compiler: installed, module: sha256(module), sources: sources() };
  writeFileSync(MODULE, module);
  writeFileSync(NOTE, `${JSON.stringify(note, null, 2)}\n`);
  return `native/drmas.wasm: ${module.length} bytes by ${installed}`;
}

function check(): string {
  const note = JSON.parse(readFileSync(NOTE, 'utf8')) as Note;
  const module = readFileSync(MODULE);
  if (sha256(module) !== note.module)
    throw new Error('native/drmas.wasm is not the file that native/drmas.wasm.json notes');
  if (sources() !== note.sources)
    throw new Error('native/drmas.wasm is older than its sources: npm run generate -- wasm');
  const here = compiler();
  if (here === undefined) return 'native/drmas.wasm matches its sources (not rebuilt: no clang and wasm-ld here)';
  if (here !== note.compiler) return `native/drmas.wasm matches its sources (not rebuilt: made by ${note.compiler})`;
  if (sha256(compile()) !== note.module) throw new Error('native/drmas.wasm does not come out of its sources again');
  return 'native/drmas.wasm matches its sources and comes out of them again, byte for byte';
}

const commands: Record<string, () => string> = { build, check };
const command = commands[process.argv[2] ?? ''];
if (command === undefined) throw new Error('expected build or check');
try {
  console.log(command());
} catch (error) {
  console.error(error instanceof Error ? error.message : error);
  process.exitCode = 1;
}
