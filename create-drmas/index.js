#!/usr/bin/env node
// `npm create drmas [directory]` is `drmas init [directory]`, by default into my-team.
import { spawnSync } from 'node:child_process';
import { createRequire } from 'node:module';
import { dirname, join } from 'node:path';

const manifest = createRequire(import.meta.url).resolve('drmas/package.json');
const words = process.argv.length > 2 ? process.argv.slice(2) : ['my-team'];
const { status } = spawnSync(process.execPath, [join(dirname(manifest), 'dist/src/cli/main.js'), 'init', ...words], {
  stdio: 'inherit',
});
process.exitCode = status ?? 1;
