/** Runs a command in this process, as a person would type it. */
import { PassThrough, Readable } from 'node:stream';
import type { Keyboard } from '../../src/cli/command-context.js';
import { runCommandLine } from '../../src/cli/command-line.js';
import { type Work, work } from '../../src/cli/wiring.js';

export interface Typed {
  readonly work?: Partial<Work>;
  readonly signal?: AbortSignal;
  readonly environment?: NodeJS.ProcessEnv;
  /** Whether errors and progress go to a terminal. */
  readonly terminal?: boolean;
  /** What comes in. */
  readonly input?: string;
}

export async function drmas(words: readonly string[], typed: Typed = {}) {
  let [out, err] = ['', ''];
  const code = await runCommandLine(
    {
      stdout: { write: (text: string) => (out += text) },
      stderr: { write: (text: string) => (err += text), isTTY: typed.terminal },
      stdin: () => keyboardOf(typed.input ?? ''),
      environment: typed.environment ?? process.env,
      signal: typed.signal ?? new AbortController().signal,
      protect: (work) => work(),
      work: { ...work, ...typed.work },
    },
    words,
  );
  return { code, out, err };
}

/** What a program sends through a pipe. */
export const keyboardOf = (text: string): Keyboard => ({ input: Readable.from([text]), output: new PassThrough() });

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
