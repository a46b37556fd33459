/** The declaration of a command. The command line, its help and the documents are made from it. */
import type { CommandContext } from './command-context.js';
import type { Flag, ValuesOfFlags } from './flags.js';

/** An argument: a word after the name of a command. */
export interface Argument<Value = unknown> {
  readonly name: string;
  readonly description: string;
  readonly words: 'one' | 'none or one' | 'any number';
  /** Carries the type of the value; the property is never set. */
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

interface CommandDefinition<Arguments extends readonly Argument[], Flags extends Readonly<Record<string, Flag>>> {
  readonly name: string;
  /** A line for the help: lower case, imperative. */
  readonly description: string;
  /** One to three sentences for the reference page. */
  readonly details: string;
  readonly arguments: Arguments;
  /** The flags by their names in camel case: `warmStartSeed` is `--warm-start-seed`. */
  readonly flags: Flags;
  /** Whole command lines, shown below the help. */
  readonly examples: readonly string[];
  /** Returns the exit code; throws a DrmasError when the request was wrong or the work failed. */
  run(context: CommandContext, args: ValuesOfArguments<Arguments>, flags: ValuesOfFlags<Flags>): Promise<number>;
  readonly subcommands?: readonly Command[];
  /** The command that a short name stands for, as a person types it. Help shows short names in a line each. */
  readonly shortFor?: string;
}

export type Command = CommandDefinition<readonly Argument[], Readonly<Record<string, Flag>>>;

export function defineCommand<
  const Arguments extends readonly Argument[],
  Flags extends Readonly<Record<string, Flag>>,
>(declaration: CommandDefinition<Arguments, Flags>): Command {
  return declaration as unknown as Command;
}

/** A flag as it is typed: `--warm-start-seed`. */
export const flagName = (key: string) => `--${key.replaceAll(/[A-Z]/g, (letter) => `-${letter.toLowerCase()}`)}`;

/** An argument in help and documents: `<run>`, `[folder]`, `[run...]`. */
export function argumentText({ name, words }: Argument): string {
  if (words === 'none or one') return `[${name}]`;
  return words === 'one' ? `<${name}>` : `[${name}...]`;
}

export function usageOf({ name, arguments: args, flags }: Command): string {
  const needed = Object.entries(flags).filter(([, { required }]) => required === true);
  return [
    `drmas ${name}`,
    ...args.map(argumentText),
    ...needed.map(([key, { value = '' }]) => `${flagName(key)} <${value}>`),
  ].join(' ');
}
