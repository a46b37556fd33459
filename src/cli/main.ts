#!/usr/bin/env node
import { runCommandLine } from './command-line.js';
import { interruptSignal } from './interrupt.js';
import { work } from './wiring.js';

const { stdout, stderr, env: environment, argv } = process;
const signal = interruptSignal(process);
process.exitCode = await runCommandLine({ stdout, stderr, environment, signal, work }, argv.slice(2));
