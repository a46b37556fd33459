import { execFile } from 'node:child_process';
import { existsSync } from 'node:fs';
import { messageOf } from '../../../base/errors.js';
import type { Environment } from '../../../base/platform.js';

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

/**
 * Runs a compiler without a shell. `problem`: the first lines of its error output, or that it took longer than
 * `timeoutMs`; undefined if it succeeded.
 */
export function run(
  [program, ...first]: Compiler['command'],
  rest: readonly string[],
  environment: Environment,
  timeoutMs = 300_000,
): Promise<{ readonly stdout: string; readonly problem: string | undefined }> {
  return new Promise((resolve) => {
    const options = { env: environment, timeout: timeoutMs, maxBuffer: 2 ** 24 };
    execFile(program, [...first, ...rest], options, (error, stdout, stderr) => {
      if (error?.killed) return resolve({ stdout, problem: `stopped after ${timeoutMs / 1000} s` });
      const complaint = stderr.trim() === '' ? messageOf(error) : stderr.trim();
      resolve({ stdout, problem: error === null ? undefined : complaint.split('\n').slice(0, 4).join('\n') });
    });
  });
}
