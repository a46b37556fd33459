#!/usr/bin/env node
import { runCommandLine } from './command-line.js';
import { interruption } from './interrupt.js';
import { work } from './wiring.js';

const { stdout, stderr, env: environment, argv } = process;
process.exitCode = await runCommandLine({ stdout, stderr, environment, work, ...interruption(process) }, argv.slice(2));
