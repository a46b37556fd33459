#!/usr/bin/env node
// `npm create drmas [directory]` is `drmas init [directory]`, by default into my-team. Node 14 can parse this
// file; the command `drmas` says which one it needs.
'use strict';

const { spawnSync } = require('node:child_process');
const { dirname, join } = require('node:path');

const manifest = require.resolve('drmas/package.json');
const program = join(dirname(manifest), require(manifest).bin.drmas);
const words = process.argv.length > 2 ? process.argv.slice(2) : ['my-team'];
const { status } = spawnSync(process.execPath, [program, 'init'].concat(words), { stdio: 'inherit' });
process.exitCode = status === null ? 1 : status;
