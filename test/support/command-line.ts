/** Runs a command in this process, as a person would type it. */
import { PassThrough, Readable } from 'node:stream';
import type { CommandContext, Keyboard } from '../../src/cli/command-context.js';
import { runCommandLine } from '../../src/cli/command-line.js';
import { openDashboard } from '../../src/cli/open-dashboard.js';
import { type RunPlace, thisProcess } from '../../src/runs/run/execute/start-run.js';
import { forecastRun } from '../../src/runs/studies/plan/forecast-run.js';

export interface Typed extends Partial<Pick<CommandContext, 'forecastRun' | 'openDashboard'>> {
  /** Functions of the place to replace. */
  readonly place?: Partial<RunPlace>;
  readonly signal?: AbortSignal;
  readonly environment?: NodeJS.ProcessEnv;
  /** Whether errors and progress go to a terminal. */
  readonly terminal?: boolean;
  /** Whether the output goes to a terminal. */
  readonly screen?: boolean;
  /** The standard input. */
  readonly input?: string;
}

/** The functions that tests may replace, as the program has them. */
export const functions = { place: thisProcess, forecastRun, openDashboard };

export async function drmas(words: readonly string[], typed: Typed = {}) {
  let [out, err] = ['', ''];
  const { place, forecastRun, openDashboard } = { ...functions, ...typed };
  const code = await runCommandLine(
    {
      stdout: { write: (text: string) => (out += text), isTTY: typed.screen },
      stderr: { write: (text: string) => (err += text), isTTY: typed.terminal },
      stdin: () => keyboardOf(typed.input ?? ''),
      environment: typed.environment ?? process.env,
      signal: typed.signal ?? new AbortController().signal,
      protect: (work) => work(),
      place: { ...thisProcess, ...place },
      forecastRun,
      openDashboard,
    },
    words,
  );
  return { code, out, err };
}

/** The standard input of a program in a pipe. */
export const keyboardOf = (text: string): Keyboard => ({ input: Readable.from([text]), output: new PassThrough() });

/** Finds a text of several words, such as a path with spaces, also where lines were folded or a long word was cut. */
export const foldedText = (text: string): RegExp =>
  new RegExp(
    [...text].map((char) => (char === ' ' ? '\\s+' : char.replace(/[.*+?^${}()|[\]\\]/, '\\$&'))).join('(?:\\n *)?'),
    'g',
  );

/** A text without white space: the same wherever its lines were folded, also inside of a long path. */
export const unspaced = (text: string): string => text.replaceAll(/\s+/g, '');

/** A recipe file without imports: two agents that are never asked. Needs no package near it. */
export const plainRecipe = `
const agent = () => ({ system: undefined, parse: (text) => text, sampling: {}, invalidPenalty: 0 });
export default {
  type: 'recipe',
  input: {
    team: { name: 'pair', agents: { solver: agent(), verifier: agent() }, play: async () => 0, reward: () => 0 },
    tasks: { name: 'sums', load: async () => ({ name: 'sums', size: 1, at: () => ({ id: '1', data: 0 }) }) },
    model: { type: 'tiny-decoder', width: 8, layers: 1, heads: 1, feedForward: 8, context: 512, tokenizer: { type: 'bytes' } },
    training: { steps: 3 },
  },
};`;
