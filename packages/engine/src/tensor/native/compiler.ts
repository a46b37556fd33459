import { execFile } from 'node:child_process';
import { existsSync } from 'node:fs';
import { messageOf } from '../../errors.js';
import type { Environment } from '../../platform.js';

/** A C++ compiler that answers `--version`. */
export interface Compiler {
  /** The program and its first arguments (`CXX` may be `ccache g++`). */
  readonly command: readonly [string, ...string[]];
  /** All that `--version` printed. */
  readonly version: string;
}

export type Found = { readonly compiler: Compiler } | { readonly reason: string };

/** `$CXX` if it is set, else the first of c++, g++, clang++ that runs. */
export async function findCompiler(environment: Environment = process.env): Promise<Found> {
  const chosen = environment.CXX?.trim();
  const candidates = chosen ? [words(chosen)] : DEFAULTS;
  const problems: string[] = [];
  for (const command of candidates) {
    const { stdout, problem } = await run(command, ['--version'], environment);
    if (problem === undefined) return { compiler: { command, version: stdout.trim() } };
    problems.push(problem);
  }
  const reason = chosen
    ? `CXX=${chosen} does not run: ${problems.join('; ')}`
    : `no C++ compiler runs (tried ${candidates.join(', ')})`;
  return { reason };
}

const DEFAULTS: (readonly [string, ...string[]])[] = [['c++'], ['g++'], ['clang++']];

function words(text: string): readonly [string, ...string[]] {
  if (existsSync(text)) return [text];
  const [program = text, ...rest] = text.split(/\s+/);
  return [program, ...rest];
}

/** The processor time that a compiler may use for one file. The longest file takes 8 s on a Xeon of 2023. */
const PROCESSOR_SECONDS = 600;

/** A compiler that uses no processor time ends too: it waits for something that does not come. */
const MOST_MS = 60 * 60 * 1000;

/** A limit of processor time ends a program with this signal. Its parent prints the sentence (in the C locale). */
const LIMIT_SIGNAL = 'SIGXCPU';
const LIMIT_SENTENCE = /cpu ?time limit exceeded/i;

export interface RunResult {
  readonly stdout: string;
  /** The first lines of the error output, or the limit that was exceeded; undefined if the program succeeded. */
  readonly problem: string | undefined;
  /** The program used up its processor time. */
  readonly limited: boolean;
}

/** Runs a compiler, or a program that it made. Each of its processes may use `processorSeconds` of processor time. */
export function run(
  command: Compiler['command'],
  rest: readonly string[],
  environment: Environment,
  processorSeconds = PROCESSOR_SECONDS,
): Promise<RunResult> {
  return new Promise((resolve) => {
    const env = { ...environment, LC_ALL: 'C' };
    // The limit is set by a shell that becomes the compiler. The words are arguments, not part of its program.
    const limit = [`ulimit -S -t ${processorSeconds}; exec "$@"`, 'sh', ...command, ...rest];
    execFile('/bin/sh', ['-c', ...limit], { env, timeout: MOST_MS, maxBuffer: 2 ** 24 }, (error, stdout, stderr) => {
      const ended = (problem: string | undefined, limited = false) => resolve({ stdout, problem, limited });
      if (error === null) return ended(undefined);
      if (error.signal === LIMIT_SIGNAL || LIMIT_SENTENCE.test(stderr))
        return ended(`stopped after ${processorSeconds} s of processor time`, true);
      if (error.killed) return ended(`stopped after ${MOST_MS / 60_000} minutes`);
      const complaint = stderr.trim() === '' ? messageOf(error) : stderr.trim();
      ended(complaint.split('\n').slice(0, 4).join('\n'));
    });
  });
}
