import { commands } from '../../../src/cli/commands/index.js';
import { argumentText, type Command, flagName, usageOf } from '../../../src/cli/define-command.js';
import { type Region, table } from '../pages.js';

/** Every command in one line of a table. */
export const commandTable: Region = {
  name: 'command-table',
  render: () =>
    table(
      ['command', 'does'],
      commands.map((command) => [`\`${usageOf(command)}\``, command.description]),
    ),
};

/** Every command with its arguments, flags and examples, from its declaration. */
export const commandPages: Region = {
  name: 'commands',
  render: () =>
    commands
      .flatMap((command) => [command, ...(command.subcommands ?? []).map((each) => below(command, each))])
      .map(section)
      .join('\n\n'),
};

const below = ({ name }: Command, subcommand: Command): Command => ({
  ...subcommand,
  name: `${name} ${subcommand.name}`,
});

function section(command: Command): string {
  const { details, arguments: args, flags, examples } = command;
  const words = [
    ...args.map((one) => [`\`${argumentText(one)}\``, one.description]),
    ...Object.entries(flags).map(([key, { value, description, choices, byDefault }]) => [
      `\`${flagName(key)}${value === undefined ? '' : ` <${value}>`}\``,
      [
        description,
        ...(choices === undefined ? [] : [`one of ${choices.map((one) => `\`${one}\``).join(', ')}`]),
        ...(typeof byDefault === 'string' ? [`default \`${byDefault}\``] : []),
      ]
        .join('; ')
        .replaceAll('<', '&lt;'),
    ]),
  ];
  return [
    `## \`${usageOf(command)}\``,
    `${details.charAt(0).toUpperCase()}${details.slice(1)}.`,
    ...(words.length === 0 ? [] : [table(['word', 'meaning'], words)]),
    ...(examples.length === 0 ? [] : [`\`\`\`sh\n${examples.map((line) => `npx ${line}`).join('\n')}\n\`\`\``]),
  ].join('\n\n');
}
