import { CommanderError, Option, Command as Program } from 'commander';
import { backendKeyVariables } from '../backends/registry.js';
import { DrmasError, messageOf } from '../core/errors.js';
import { Secret } from '../core/secret.js';
import { packageVersion } from '../platform/package-version.js';
import type { CommandContext } from './command-context.js';
import { commands } from './commands/index.js';
import { argumentText, type Command, flagName } from './define-command.js';
import type { Flag } from './flags.js';
import { guardedStream } from './reporter/screen.js';

/** The variables of the environment that hold keys. */
const KEY_VARIABLES = [...backendKeyVariables, 'OPENAI_API_KEY', 'HF_TOKEN'];

/** Runs one command. Returns the exit code; everything that goes wrong is one message on stderr. */
export async function runCommandLine(surroundings: CommandContext, words: readonly string[]): Promise<number> {
  const context = guarded(surroundings);
  let exitCode = 0;
  const program = programOf(context, (code) => {
    exitCode = code;
  });
  try {
    if (words.length === 0) program.outputHelp();
    else await program.parseAsync([...words], { from: 'user' });
    return exitCode;
  } catch (error) {
    // Commander has written what was wrong with the words; help and version are no errors.
    if (error instanceof CommanderError) return error.exitCode === 0 ? 0 : 2;
    context.stderr.write(`error: ${context.environment.DRMAS_DEBUG === '1' ? stackOf(error) : messageOf(error)}\n`);
    return error instanceof DrmasError ? error.exitCode : 1;
  }
}

/** The context with streams that no text of whatever origin can misuse, and that show no key of the environment. */
function guarded(context: CommandContext): CommandContext {
  const secrets = KEY_VARIABLES.flatMap((name) => context.environment[name] ?? []).map((key) => new Secret(key.trim()));
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
    })
    .exitOverride()
    .showHelpAfterError('(drmas --help shows what there is)')
    .addHelpText(
      'after',
      examplesText(['drmas train math', 'drmas train my-team.ts --set training.steps=20', 'drmas doctor']),
    );
  const add = (parent: Program, command: Command) => {
    const { arguments: args, examples, subcommands = [] } = command;
    const child = parent.command(command.name).description(command.description);
    for (const one of args) child.argument(argumentText(one), one.description);
    for (const [key, flag] of Object.entries(command.flags)) child.addOption(optionOf(key, flag));
    if (examples.length > 0) child.addHelpText('after', examplesText(examples));
    child.action(async (...words: (string | string[])[]) =>
      ended(await command.run(context, words.slice(0, args.length), child.opts())),
    );
    for (const subcommand of subcommands) add(child, subcommand);
  };
  for (const command of commands) add(program, command);
  return program;
}

function optionOf(key: string, { value, description, required, choices, byDefault, parse }: Flag): Option {
  const option = new Option(`${flagName(key)}${value === undefined ? '' : ` <${value}>`}`, description);
  if (parse !== undefined) option.argParser(parse);
  if (choices !== undefined) option.choices(choices);
  if (byDefault !== undefined) option.default(byDefault);
  return option.makeOptionMandatory(required === true);
}

const examplesText = (lines: readonly string[]) => `\nExamples:\n${lines.map((line) => `  $ ${line}`).join('\n')}\n`;
