import { describe, expect, it } from 'vitest';
import { drmas } from '../../../test/support/command-line.js';
import { argumentText, type Command, currentFlags, flagName, optionalArgument, usageOf } from '../define-command.js';
import { commands } from './index.js';

const named = (name: string) => commands.find((command) => command.name === name) as Command;

describe('commands', () => {
  it('have names and sentences of their own', () => {
    for (const of of [commands.map(({ name }) => name), commands.map(({ description }) => description)])
      expect(new Set(of).size).toBe(commands.length);
    for (const { details } of commands) expect(details).toMatch(/\S/);
  });

  it.each(commands.map(({ name }) => name))('%s explains its arguments and flags, with examples', async (name) => {
    const { code, out } = await drmas([name, '--help']);
    const { arguments: args, examples } = named(name);
    expect(code).toBe(0);
    expect(out).toContain(`Usage: drmas ${name}`);
    for (const argument of args) expect(out).toContain(`  ${argument.name} `);
    for (const [key, { value }] of currentFlags(named(name)))
      expect(out).toContain(`  ${flagName(key)}${value === undefined ? '' : ` <${value}>`} `);
    for (const example of examples) expect(out).toContain(`  $ ${example}\n`);
  });

  it('are written with what they cannot do without', () => {
    expect(usageOf(named('export'))).toBe('drmas export <run> --agent <name> --to <directory>');
    expect(usageOf(named('report'))).toBe('drmas report [run...]');
    expect(usageOf(named('doctor'))).toBe('drmas doctor');
    expect(argumentText(optionalArgument('folder', 'where'))).toBe('[folder]');
  });
});
