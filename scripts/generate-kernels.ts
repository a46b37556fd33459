/**
 * `generate`: writes what follows from native/manifest; see there. `check`: fails where a committed file is not
 * what would be written, or an implementation that the manifest names does not exist.
 */
import { execFileSync } from 'node:child_process';
import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { dirname } from 'node:path';
import { fileURLToPath } from 'node:url';
import { addonHeader, PARTS, partHeader, tableHeader, wasmExports } from './kernels/cpp.js';
import { kernels } from './kernels/declarations.js';
import { kernelExamples, nativeExamples } from './kernels/examples.js';
import { kernelInterface } from './kernels/interface.js';
import { addonKernels, checkedKernels, referenceKernels } from './kernels/typescript.js';

const root = fileURLToPath(new URL('..', import.meta.url));

const FILES: Readonly<Record<string, () => string>> = {
  'packages/engine/native/generated/table.h': tableHeader,
  ...Object.fromEntries(PARTS.map((part) => [`packages/engine/native/generated/${part}.h`, () => partHeader(part)])),
  'packages/engine/native/generated/addon.h': addonHeader,
  'packages/engine/native/generated/wasm-exports.h': wasmExports,
  'packages/engine/src/tensor/kernel-operations.ts': kernelInterface,
  'packages/engine/src/tensor/native/addon-kernels.ts': addonKernels,
  'packages/engine/src/tensor/reference/reference-kernels.ts': referenceKernels,
  'packages/engine/src/tensor/wasm/checked-kernels.ts': checkedKernels,
  'test/native/every-kernel.h': nativeExamples,
  'test/contracts/kernels/every-kernel.ts': kernelExamples,
};

/** The text as the formatter leaves it; C++ has none. */
function formatted(path: string, text: string): string {
  if (!path.endsWith('.ts')) return text;
  const biome = ['biome', 'format', `--stdin-file-path=${path}`];
  return execFileSync('npx', biome, { cwd: root, input: text, encoding: 'utf8', stdio: ['pipe', 'pipe', 'inherit'] });
}

/** Files that the manifest names and that do not exist. */
function missing(): string[] {
  return kernels.flatMap(({ name, header, reference }) =>
    [
      `packages/engine/native/${header}`,
      ...(reference === undefined ? [] : [`packages/engine/src/tensor/reference/${reference}`]),
    ]
      .filter(
        (path) =>
          !existsSync(`${root}${path}`) || !new RegExp(`\\b${name}\\b`).test(readFileSync(`${root}${path}`, 'utf8')),
      )
      .map((path) => `${path} has no kernel ${name}, which native/manifest says is there`),
  );
}

const [command] = process.argv.slice(2);
if (command !== 'generate' && command !== 'check') throw new Error(`expected generate or check, got ${command}`);
const problems = missing();
for (const [path, write] of Object.entries(FILES)) {
  const at = `${root}${path}`;
  const text = formatted(path, write());
  if (existsSync(at) && readFileSync(at, 'utf8') === text) continue;
  if (command === 'check') problems.push(`${path} is not what native/manifest says: npm run generate`);
  else {
    mkdirSync(dirname(at), { recursive: true });
    writeFileSync(at, text);
    console.log(`wrote ${path}`);
  }
}
for (const problem of problems) console.error(problem);
if (problems.length > 0) process.exitCode = 1;
