/**
 * `npm run generate`: writes the committed files that are made from others. Without a name, or with `kernels`: the
 * code that follows from native/manifest. `wasm`: the WebAssembly module (clang, wasm-ld). `prebuilt [target]...`:
 * the addons for seven systems (Zig from PyPI).
 */
import { spawnSync } from 'node:child_process';
import { fileURLToPath } from 'node:url';

const commands: Readonly<Record<string, readonly string[]>> = {
  kernels: ['scripts/generate-kernels.ts', 'generate'],
  wasm: ['scripts/wasm.ts', 'build'],
  prebuilt: ['scripts/prebuilt.ts', 'build'],
};

const [name = 'kernels', ...words] = process.argv.slice(2);
const command = commands[name];
if (command === undefined) {
  console.error(`there is no '${name}' to generate; expected ${Object.keys(commands).join(', ')}`);
  process.exitCode = 2;
} else {
  const cwd = fileURLToPath(new URL('..', import.meta.url));
  const { status, error } = spawnSync('npx', ['--no-install', 'tsx', ...command, ...words], { cwd, stdio: 'inherit' });
  if (error) throw error;
  process.exitCode = status ?? 1;
}
