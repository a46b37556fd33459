/** Programs that a server of tools has started: each is a command of drmas in a process of its own. */
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { ArgumentError, RunError } from '@drmas/engine/errors';
import { nodeFiles } from '@drmas/engine/platform';
import { RECIPE } from '../../method/store.js';

const MOST_RUNS = 4;
/** A recipe may compile kernels, or read a large model, before its run exists. */
const BEGIN_SECONDS = 300;
const STOP_SECONDS = 60;
const PLAN_SECONDS = 300;
/** The end of a program's errors, for messages. */
const LONGEST_COMPLAINT = 4000;

interface Started {
  readonly child: ChildProcess;
  complaint: string;
  output: string;
}

export class StartedRuns {
  readonly #folder: string;
  readonly #environment: NodeJS.ProcessEnv;
  /** The words that start drmas. */
  readonly #program: readonly string[];
  readonly #runs = new Map<string, Started>();

  constructor(folder: string, environment: NodeJS.ProcessEnv, program: readonly string[]) {
    this.#folder = folder;
    this.#environment = environment;
    this.#program = program;
  }

  /** The state of the process of a run; null if this server has not started it. */
  stateOf(run: string): 'running' | { readonly exitCode: number | null } | null {
    const started = this.#runs.get(run);
    if (started === undefined) return null;
    return isRunning(started) ? 'running' : { exitCode: started.child.exitCode };
  }

  /** Runs a command to its end. Returns its output. @throws RunError with its message if it fails */
  async finished(words: readonly string[], signal: AbortSignal): Promise<string> {
    const started = this.#spawn(words);
    const end = () => started.child.kill();
    const timer = setTimeout(end, PLAN_SECONDS * 1000);
    signal.addEventListener('abort', end, { once: true });
    try {
      await ended(started);
    } finally {
      clearTimeout(timer);
      signal.removeEventListener('abort', end);
    }
    if (started.child.exitCode === 0) return started.output;
    throw new RunError(complaintOf(started, words));
  }

  /** Starts a run. Resolves when its directory exists. @throws RunError with the reason if it does not begin */
  async start(run: string, words: readonly string[], signal: AbortSignal): Promise<{ readonly pid: number }> {
    const running = [...this.#runs.values()].filter(isRunning).length;
    if (running >= MOST_RUNS) throw new ArgumentError(`${running} runs are in progress; stop one first`);
    if (await nodeFiles.exists(run)) throw new ArgumentError(`${run} exists already; choose another run`);
    const started = this.#spawn(words);
    this.#runs.set(run, started);
    const deadline = performance.now() + BEGIN_SECONDS * 1000;
    while (isRunning(started) && !(await nodeFiles.exists(join(run, RECIPE)))) {
      if (signal.aborted || performance.now() > deadline) {
        started.child.kill('SIGINT');
        throw new RunError(`${words.join(' ')}: the run did not begin within ${BEGIN_SECONDS} s`);
      }
      await sleep(50);
    }
    const { exitCode, pid } = started.child;
    if (exitCode !== null && exitCode !== 0) {
      this.#runs.delete(run);
      throw new RunError(complaintOf(started, words));
    }
    return { pid: pid ?? 0 };
  }

  /** Interrupts a run, and waits for its checkpoint. @throws ArgumentError for a run that this server did not start */
  async stop(run: string): Promise<void> {
    const started = this.#runs.get(run);
    if (started === undefined) throw new ArgumentError(`this server did not start ${run}; it stops only its own runs`);
    if (!isRunning(started)) return;
    started.child.kill('SIGINT');
    const timer = setTimeout(() => started.child.kill(), STOP_SECONDS * 1000);
    await ended(started).finally(() => clearTimeout(timer));
  }

  /** Interrupts all runs. Each stops after a checkpoint. */
  async stopAll(): Promise<void> {
    await Promise.all([...this.#runs.keys()].map((run) => this.stop(run)));
  }

  #spawn(words: readonly string[]): Started {
    const child = spawn(process.execPath, [...this.#program, ...words], {
      cwd: this.#folder,
      env: this.#environment,
      stdio: ['ignore', 'pipe', 'pipe'],
    });
    const started: Started = { child, complaint: '', output: '' };
    // A run prints its events, which are in its log too.
    const keeps = words[0] !== 'train';
    child.stdout.on('data', (part: unknown) => {
      if (keeps) started.output += String(part);
    });
    child.stderr.on('data', (part: unknown) => {
      started.complaint = (started.complaint + String(part)).slice(-LONGEST_COMPLAINT);
    });
    child.on('error', (error) => {
      started.complaint += error.message;
    });
    return started;
  }
}

const isRunning = ({ child }: Started) =>
  child.exitCode === null && child.signalCode === null && child.pid !== undefined;

async function ended(started: Started): Promise<void> {
  if (isRunning(started)) await once(started.child, 'close');
}

const complaintOf = ({ complaint, child }: Started, words: readonly string[]) =>
  complaint.trim().replace(/^error: /, '') || `drmas ${words[0]} ended with ${child.signalCode ?? child.exitCode}`;
