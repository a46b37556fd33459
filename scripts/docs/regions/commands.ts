import { commands, shortNames } from '../../../src/cli/commands/index.js';
import { argumentText, type Command, currentFlags, flagName, usageOf } from '../../../src/cli/define-command.js';
import { type Region, table } from '../pages.js';

/** Every command in one line of a table. */
export const commandTable: Region = {
  name: 'command-table',
  render: () =>
    [
      table(
        ['command', 'does'],
        commands.map((command) => [`\`${usageOf(command)}\``, command.description]),
      ),
      ...shortNames.map((command) => `\`${usageOf(command)}\` is short for \`${command.shortFor}\`.`),
    ].join('\n\n'),
};

/** Every command with its arguments, flags and examples, from its declaration. */
export const commandPages: Region = {
  name: 'commands',
  render: () => [...commands, ...shortNames].flatMap(withSubcommands).map(section).join('\n\n'),
};

const withSubcommands = (command: Command): Command[] => [
  command,
  ...(command.subcommands ?? []).flatMap((each) => withSubcommands(below(command, each))),
];

const below = ({ name }: Command, subcommand: Command): Command => ({
  ...subcommand,
  name: `${name} ${subcommand.name}`,
});

function section(command: Command): string {
  const { details, arguments: args, examples } = command;
  const words = [
    ...args.map((one) => [`\`${argumentText(one)}\``, one.description]),
    ...currentFlags(command).map(([key, { value, description, choices, byDefault }]) => [
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
    ...(examples.length === 0
      ? []
      : [`\`\`\`sh\n${examples.map((line) => line.replace(/(^|\| )drmas /, '$1npx drmas ')).join('\n')}\n\`\`\``]),
  ].join('\n\n');
}
