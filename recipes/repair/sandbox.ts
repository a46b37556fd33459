/** The test tool of the toolbox: a sandbox that runs a command line against the hidden tests of a request. */
import { ArgumentError } from 'drmas';
import { RandomStream } from 'drmas/tasks';
import {
  execute,
  type Files,
  fileNames,
  messages,
  type Operation,
  operations,
  type ToolboxVersion,
  withContents,
} from './commands.js';

/** A request for one operation on two files. */
export interface ToolboxRequest {
  readonly operation: Operation;
  readonly source: string;
  readonly target: string;
}

export const requestText = ({ operation: { verb, link }, source, target }: ToolboxRequest): string =>
  `${verb} ${source} ${link} ${target}`;

/** Reads a request. @throws ArgumentError for a text that is none */
export function readRequest(text: string): ToolboxRequest {
  const [verb, source = '', link, target = '', ...rest] = text.split(' ');
  const operation = operations.find((each) => each.verb === verb && each.link === link);
  if (operation === undefined || ![source, target].every((name) => fileNames.includes(name)) || rest.length > 0)
    throw new ArgumentError(`expected a request such as 'sort c into f', got '${text}'`);
  return { operation, source, target };
}

/**
 * The number of tests of a request. In 4 of the 2,160 pairs of a request and a version a wrong command passes all
 * three: in the files of two `bottom` requests the first line equals the last (world.test.ts lists the pairs). They
 * stay, because other files would change every stored run.
 */
const TESTS = 3;

/** Files before a command and what has to be in them afterwards. */
interface HiddenTest {
  readonly before: Files;
  readonly after: Files;
}

/** The tests of a request: random files, the same ones every time, and the files after the operation. */
function testsOf(text: string): readonly HiddenTest[] {
  const { operation, source, target } = readRequest(text);
  return Array.from({ length: TESTS }, (_, index) => {
    const random = new RandomStream('toolbox', 'test', text, index);
    const before: Files = new Map(fileNames.map((name) => [name, lines(random)]));
    const contents = operation.apply(before.get(source) ?? [], before.get(target) ?? []);
    return { before, after: withContents(before, { source, target }, contents) };
  });
}

/** Four to seven lines. The last one repeats another, so that deduplicating always changes the file. */
function lines(random: RandomStream): number[] {
  const first = Array.from({ length: random.integer(3, 6) }, () => random.integer(0, 9));
  return [...first, random.pick(first as [number, ...number[]])];
}

/** A sandbox's report on a command line. */
export interface SandboxReport {
  /** Whether every test passed. */
  readonly passed: boolean;
  /** The message of the first thing that went wrong; empty when nothing did. */
  readonly message: string;
}

/** A sandbox with one version of the toolbox, in which command lines are run against the hidden tests of a request. */
export interface Sandbox {
  run(line: string): SandboxReport;
}

/**
 * Opens a sandbox for a request. Its version cannot be seen from outside: the first command that runs shows it.
 * @throws ArgumentError for a text that is no request
 *
 * @example
 * ```ts
 * import { toolboxSandbox } from 'drmas/recipes/repair/sandbox';
 *
 * toolboxSandbox('sort c into f', 2).run('sort c f').message; // 'sort: removed in version 2'
 * toolboxSandbox('exchange c with f', 2).run('trade f c').passed; // true: the files are right
 * ```
 */
export function toolboxSandbox(request: string, version: ToolboxVersion): Sandbox {
  const tests = testsOf(request);
  return {
    run(line) {
      for (const { before, after } of tests) {
        const result = execute(line, before, version);
        if (typeof result === 'string') return { passed: false, message: result };
        if (!holdTheSame(result, after)) return { passed: false, message: messages.failed };
      }
      return { passed: true, message: '' };
    },
  };
}

function holdTheSame(some: Files, others: Files): boolean {
  return some.size === others.size && [...some].every(([name, lines]) => others.get(name)?.join() === lines.join());
}
