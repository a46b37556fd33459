/** The command language of the generated toolbox: what its commands do to files, and what each version calls them. */

/** The content of a file, line by line. */
export type Lines = readonly number[];
/** The files by name. */
export type Files = ReadonlyMap<string, Lines>;
/** The version that is installed: the second renamed every command and removed the old names. */
export type ToolboxVersion = 1 | 2;

export interface Operation {
  /** The verb of a request, such as `sort c into f`. */
  readonly verb: string;
  /** The word between the two files of a request. */
  readonly link: string;
  /** The command's name in each version. */
  readonly names: Readonly<Record<ToolboxVersion, string>>;
  /** The contents of both files after the command; `undefined` is a file that is gone. */
  readonly apply: (source: Lines, target: Lines) => readonly [source: Lines | undefined, target: Lines];
}

const operation = (
  verb: string,
  link: string,
  names: readonly [string, string],
  apply: Operation['apply'],
): Operation => ({ verb, link, names: { 1: names[0], 2: names[1] }, apply });

/** An operation that leaves the source as it is. */
const intoTarget = (
  verb: string,
  link: string,
  names: readonly [string, string],
  write: (source: Lines, target: Lines) => Lines,
) => operation(verb, link, names, (source, target) => [source, write(source, target)]);

export const operations = [
  intoTarget('copy', 'to', ['cp', 'clone'], (source) => source),
  operation('move', 'to', ['mv', 'shift'], (source) => [undefined, source]),
  operation('exchange', 'with', ['swap', 'trade'], (source, target) => [target, source]),
  intoTarget('append', 'to', ['cat', 'extend'], (source, target) => [...target, ...source]),
  intoTarget('subtract', 'from', ['diff', 'without'], (source, target) => target.filter((x) => !source.includes(x))),
  intoTarget('sort', 'into', ['sort', 'order'], (source) => [...source].sort((x, y) => x - y)),
  intoTarget('reverse', 'into', ['tac', 'mirror'], (source) => [...source].reverse()),
  intoTarget('dedupe', 'into', ['uniq', 'distinct'], (source) => [...new Set(source)]),
  intoTarget('count', 'into', ['wc', 'size'], (source) => [source.length]),
  intoTarget('total', 'into', ['sum', 'fold'], (source) => [source.reduce((sum, x) => sum + x, 0)]),
  intoTarget('top', 'into', ['head', 'first'], (source) => source.slice(0, 1)),
  intoTarget('bottom', 'into', ['tail', 'last'], (source) => source.slice(-1)),
] as const satisfies readonly Operation[];

export const fileNames = [...'abcdefghij'] as [string, ...string[]];

/** The messages of the toolbox; the command's name precedes the first. */
export const messages = {
  removed: ': removed in version 2',
  unknown: 'not a command',
  noFile: 'no such file',
  usage: 'usage: command file file',
  failed: 'a test failed',
} as const;

/**
 * All symbols of this family's texts, for a model with one token for each. Words within a line begin with a space, so
 * that a text can be cut in one way only.
 */
export const toolboxSymbols: readonly string[] = [
  ...new Set([
    ...['<end>', '<ask>', '<coder>', '<fixer>'],
    ...operations.flatMap(({ verb, link, names }) => [verb, ` ${link}`, names[1], names[2]]),
    ...fileNames.map((name) => ` ${name}`),
    ...Object.values(messages),
  ]),
];

/** The parts of a command line; `undefined` for any other text. */
function partsOf(line: string) {
  const [, name = '', source = '', target = ''] = /^([a-z]+) ([a-z]+) ([a-z]+)$/.exec(line) ?? [];
  return name === '' ? undefined : { name, source, target };
}

/** The command line that the text consists of, with a name of either version; `undefined` for any other text. */
export function toolboxCommand(text: string): string | undefined {
  const parts = partsOf(text);
  if (parts === undefined) return undefined;
  const { name, source, target } = parts;
  const known = operations.some(({ names }) => names[1] === name || names[2] === name);
  return known && fileNames.includes(source) && fileNames.includes(target) ? text : undefined;
}

/** Runs a command line with the given version. Returns the files after it, or an error message. */
export function execute(line: string, files: Files, version: ToolboxVersion): Files | string {
  const parts = partsOf(line);
  if (parts === undefined) return messages.usage;
  const { name, source, target } = parts;
  const command = operations.find(({ names }) => names[version] === name);
  if (command === undefined) {
    const before = version === 2 && operations.some(({ names }) => names[1] === name);
    return before ? name + messages.removed : messages.unknown;
  }
  const [from, to] = [files.get(source), files.get(target)];
  return from && to ? withContents(files, { source, target }, command.apply(from, to)) : messages.noFile;
}

/** The files after an operation has left these contents of two of them. */
export function withContents(
  files: Files,
  { source, target }: { readonly source: string; readonly target: string },
  [kept, written]: ReturnType<Operation['apply']>,
): Files {
  const after = new Map(files);
  if (kept === undefined) after.delete(source);
  else after.set(source, kept);
  return after.set(target, written);
}
