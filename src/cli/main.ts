#!/usr/bin/env node
import { enableWatchdog } from '../rollout/watchdog/watchdog.js';
import { runCommandLine } from './command-line.js';
import { interruption } from './interrupt.js';
import { guardExit, reserveStdout } from './process-guard.js';
import { work } from './wiring.js';

const { stderr, env: environment, argv } = process;
const words = argv.slice(2);
const stdout = words.includes('--json') ? reserveStdout(process) : process.stdout;
const ended = guardExit(process);
void enableWatchdog();
const stdin = () => ({ input: process.stdin, output: process.stdout });
process.exitCode = await runCommandLine({ stdin, stdout, stderr, environment, work, ...interruption(process) }, words);
ended();
