import { existsSync } from 'node:fs';
import { DrmasError, messageOf } from '@drmas/engine/errors';
import { Secret } from '@drmas/engine/host';
import { packageVersion } from '@drmas/engine/platform';
import { CommanderError, InvalidArgumentError, Option, Command as Program } from 'commander';
import { keyVariablesOf, settingNamed } from '../method/recipe.js';
import { standard } from '../runs/composition.js';
import { allowStored } from '../runs/index.js';
import type { CommandContext } from './command-context.js';
import { commandGroups, otherFlags, otherWords, shortNames } from './commands/index.js';
import { type Argument, argumentText, type Command, flagName } from './define-command.js';
import type { Flag } from './flags.js';
import { guardedStream } from './reporter/screen.js';

const KEY_VARIABLES = [...keyVariablesOf(standard), 'OPENAI_API_KEY', 'HF_TOKEN'];

/** A path with backslashes, as on Windows, is one with slashes if only that exists. */
const withSlashes = (word: string): string => {
  const slashed = word.replaceAll('\\', '/');
  return slashed !== word && !existsSync(word) && existsSync(slashed) ? slashed : word;
};

/** The reasons for which a disk refuses to write, by the code of the error. */
const REFUSALS: Readonly<Record<string, string>> = {
  ENOSPC: 'The disk is full. Make room',
  EDQUOT: 'Your quota of the disk is used up. Make room',
  EFBIG: 'A file has reached the largest size that is allowed. Raise the limit (see `ulimit -f`)',
};

function wayOn(message: string): string {
  const code = Object.keys(REFUSALS).find((each) => message.includes(`${each}:`));
  if (code === undefined) return '';
  return `${REFUSALS[code]}, then type the command again; a run that has begun goes on with: npx drmas resume RUN\n`;
}

/** Runs one command. Returns the exit code; an error is one message on stderr. */
export async function runCommandLine(surroundings: CommandContext, words: readonly string[]): Promise<number> {
  const context = guarded(surroundings);
  let exitCode = 0;
  const program = programOf(context, (code) => {
    exitCode = code;
  });
  try {
    if (words.length === 0) program.outputHelp();
    else await program.parseAsync(words.map(withSlashes), { from: 'user' });
    return exitCode;
  } catch (error) {
    // Commander has already printed the message. Help and version are no errors.
    if (error instanceof CommanderError) return error.exitCode === 0 ? 0 : 2;
    const text = context.environment.DRMAS_DEBUG === '1' ? stackOf(error) : messageOf(error);
    context.stderr.write(`error: ${text}\n${wayOn(text)}`);
    return error instanceof DrmasError ? error.exitCode : 1;
  }
}

/** The context with streams that escape control characters and hide the keys of the environment. */
function guarded(context: CommandContext): CommandContext {
  const secrets = KEY_VARIABLES.flatMap((name) => context.environment[name] ?? []).map((key) => new Secret(key));
  const { stdout, stderr } = context;
  return { ...context, stdout: guardedStream(stdout, secrets), stderr: guardedStream(stderr, secrets) };
}

function stackOf(error: unknown): string {
  if (!(error instanceof Error)) return String(error);
  const cause = error.cause === undefined ? '' : `\ncaused by: ${stackOf(error.cause)}`;
  return `${error.stack ?? error.message}${cause}`;
}

function programOf(context: CommandContext, ended: (exitCode: number) => void): Program {
  const program = new Program('drmas')
    .description('Train teams of LLM agents with reinforcement learning, stably (Dr. MAS).')
    .version(packageVersion(), '--version')
    .configureOutput({
      writeOut: (words) => void context.stdout.write(words),
      writeErr: (words) => void context.stderr.write(words),
      outputError: (message, write) => write(withCommand(message)),
    })
    .exitOverride()
    .enablePositionalOptions() // a subcommand may have a flag of its parent's name
    .commandsGroup('Start:') // of `help`
    .helpCommand('help [command]', 'display help for command')
    .showHelpAfterError('(drmas --help lists the commands)')
    .addHelpText('after', `\nShort names:\n${shortNames.map(shortLine).join('\n')}`)
    .addHelpText(
      'after',
      examplesText(['drmas train math', 'drmas train my-team.ts --set training.steps=20', 'drmas doctor']),
    );
  const add = (parent: Program, command: Command, path = 'drmas') => {
    const { arguments: args, examples, subcommands = [] } = command;
    const child = parent
      .command(command.name, { hidden: command.shortFor !== undefined })
      .description(command.description);
    child.showHelpAfterError(`(${path} ${command.name} --help lists its flags)`);
    if ('set' in command.flags) child.configureOutput({ outputError: (message, write) => write(withSetting(message)) });
    for (const one of args) child.argument(argumentText(one), one.description, parserOf(one));
    for (const [key, flag] of Object.entries(command.flags)) child.addOption(optionOf(key, flag));
    if (examples.length > 0) child.addHelpText('after', examplesText(examples));
    child.action(async (...words: (string | string[])[]) => {
      const { allowEndpoint = [], ...flags } = child.opts();
      allowStored(allowEndpoint as readonly string[]);
      ended(await command.run(context, words.slice(0, args.length), flags));
    });
    if (subcommands.length > 0) child.enablePositionalOptions();
    for (const subcommand of subcommands) add(child, subcommand, `${path} ${command.name}`);
  };
  for (const [heading, group] of Object.entries(commandGroups)) {
    program.commandsGroup(heading);
    for (const command of group) add(program, command);
  }
  for (const command of shortNames) add(program, command);
  return program;
}

/** A word of the command line. Scripts type an empty one for a variable that is not set. */
function filled(word: string): string {
  if (word === '') throw new InvalidArgumentError('it is empty; is a variable of the shell not set?');
  return word;
}

const parserOf = ({ words }: Argument) =>
  words === 'any number' ? (word: string, before: readonly string[] = []) => [...before, filled(word)] : filled;

function optionOf(key: string, { value, description, required, choices, byDefault, parse }: Flag): Option {
  const option = new Option(`${flagName(key)}${value === undefined ? '' : ` <${value}>`}`, description);
  if (value !== undefined) option.argParser((word, previous) => (parse ?? ((text) => text))(filled(word), previous));
  if (choices !== undefined) option.choices(choices);
  if (byDefault !== undefined) option.default(byDefault);
  return option.makeOptionMandatory(required === true);
}

/** Commander's message; for another word for a command, with that command. */
function withCommand(message: string): string {
  const [line = '', word = ''] = /^error: unknown command '(.*)'/.exec(message) ?? [];
  return Object.hasOwn(otherWords, word) ? `${line}\n(Did you mean ${otherWords[word]}?)\n` : message;
}

/** Commander's message; for another word for a flag, or a flag that has the name of a setting, with what to type. */
function withSetting(message: string): string {
  const [line = '', flag = ''] = /^error: unknown option '--([\w-]+).*'/.exec(message) ?? [];
  if (Object.hasOwn(otherFlags, flag)) return `${line}\n(Did you mean ${otherFlags[flag]}?)\n`;
  const name = flag.replaceAll(/-([a-z])/g, (_, letter: string) => letter.toUpperCase());
  const path = name === '' ? undefined : settingNamed(name, standard);
  return path === undefined ? message : `${line}\n(Did you mean --set ${path}=VALUE?)\n`;
}

const shortLine = ({ name, shortFor }: Command) => `  ${name}  ${shortFor}`;

const examplesText = (lines: readonly string[]) => `\nExamples:\n${lines.map((line) => `  $ ${line}`).join('\n')}\n`;
