import { thisProcess } from '../runs/index.js';
import { forecastRun } from '../runs/studies.js';
import { enableWatchdog } from '../teams/watchdog.js';
import { runCommandLine } from './command-line.js';
import { openDashboard } from './open-dashboard.js';
import { endProcess, guardExit, interruption, reserveStdout } from './process-guard.js';

const { stderr, env: environment, argv } = process;
const words = argv.slice(2);
const stdout = words.includes('--json') ? reserveStdout(process) : process.stdout;
const ended = guardExit(process);
void enableWatchdog();
const stdin = () => ({ input: process.stdin, output: process.stdout });
const replaceable = { place: thisProcess, forecastRun, openDashboard };
const { lostOutput, ...interruptible } = interruption(process);
const exitCode = await runCommandLine({ stdin, stdout, stderr, environment, ...replaceable, ...interruptible }, words);
ended();
await endProcess(process, exitCode, lostOutput);
