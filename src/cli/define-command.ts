/** The declaration of a command: all that the command line, its help and the documents know about it. */
import type { CommandContext } from './command-context.js';
import type { Flag, ValuesOfFlags } from './flags.js';

/** An argument: what a person types after the name of a command. */
export interface Argument<Value = unknown> {
  readonly name: string;
  readonly description: string;
  /** How many words it takes. */
  readonly words: 'one' | 'none or one' | 'any number';
  /** The type of its value; the property is never set. */
  readonly value?: Value;
}

export const argument = (name: string, description: string): Argument<string> => ({ name, description, words: 'one' });

export const optionalArgument = (name: string, description: string): Argument<string | undefined> => ({
  name,
  description,
  words: 'none or one',
});

export const severalArguments = (name: string, description: string): Argument<readonly string[]> => ({
  name,
  description,
  words: 'any number',
});

type ValuesOfArguments<Arguments extends readonly Argument[]> = {
  readonly [I in keyof Arguments]: Arguments[I] extends Argument<infer Value> ? Value : never;
};

interface Declaration<Arguments extends readonly Argument[], Flags extends Readonly<Record<string, Flag>>> {
  readonly name: string;
  /** A line for the help. */
  readonly description: string;
  /** A sentence or two for a page of the documents. */
  readonly details: string;
  readonly arguments: Arguments;
  /** The flags by their names in camel case: `warmStartSeed` is `--warm-start-seed`. */
  readonly flags: Flags;
  /** Whole command lines, shown below the help. */
  readonly examples: readonly string[];
  /** Returns the exit code; throws a DrmasError when the request was wrong or the work failed. */
  run(context: CommandContext, args: ValuesOfArguments<Arguments>, flags: ValuesOfFlags<Flags>): Promise<number>;
  readonly subcommands?: readonly Command[];
}

/** A command whose arguments and flags are read as its declaration says. */
export type Command = Declaration<readonly Argument[], Readonly<Record<string, Flag>>>;

export function defineCommand<
  const Arguments extends readonly Argument[],
  Flags extends Readonly<Record<string, Flag>>,
>(declaration: Declaration<Arguments, Flags>): Command {
  return declaration as unknown as Command;
}

/** A flag as it is typed: `--warm-start-seed`. */
export const flagName = (key: string) => `--${key.replaceAll(/[A-Z]/g, (letter) => `-${letter.toLowerCase()}`)}`;

/** An argument as help and documents write it: `<run>`, `[folder]`, `[run...]`. */
export function argumentText({ name, words }: Argument): string {
  if (words === 'none or one') return `[${name}]`;
  return words === 'one' ? `<${name}>` : `[${name}...]`;
}

/** A command with its arguments and the flags that it cannot do without. */
export function usageOf({ name, arguments: args, flags }: Command): string {
  const needed = Object.entries(flags).filter(([, { required }]) => required === true);
  return [
    `drmas ${name}`,
    ...args.map(argumentText),
    ...needed.map(([key, { value = '' }]) => `${flagName(key)} <${value}>`),
  ].join(' ');
}
