import { execFileSync } from 'node:child_process';
import { mkdtempSync, readdirSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import fc from 'fast-check';
import { afterAll, describe, expect, it } from 'vitest';
import { commandText } from './command-text.js';

const root = mkdtempSync(join(tmpdir(), 'drmas-command-'));
afterAll(() => rmSync(root, { recursive: true, force: true }));

/** The words of a command after the first, as a POSIX shell reads them. */
function wordsOf(command: string): string[] {
  const text = execFileSync('sh', ['-c', `show() { for word; do printf '%s\\0' "$word"; done; }; ${command}`], {
    cwd: root,
    encoding: 'utf8',
  });
  return text.split('\0').slice(0, -1);
}

const NAMES = [
  ...[
    'a;x',
    '$(touch owned)',
    '`touch owned`',
    'two words',
    "it's",
    '"',
    '\\',
    'a\nb',
    'ends in a line\n',
    '',
    '*',
    '~',
  ],
  ...[
    '-rf',
    '#x',
    '!x',
    'a&b',
    'a|b',
    'a>owned',
    '{a,b}',
    '[a]',
    '?',
    '%s',
    'Zoë',
    '日本',
    '\u001b[31m',
    '\t',
    "'; touch owned; '",
  ],
];

describe.skipIf(process.platform === 'win32')('a command in a message', () => {
  it('has the same words in a shell, and runs none of them', () => {
    expect(wordsOf(commandText(['show', ...NAMES], 'linux'))).toEqual(NAMES);
    expect(readdirSync(root)).toEqual([]);
  });

  it('has the same words in a shell, of any characters, and no control character but line feeds', {
    tags: 'verify',
  }, () => {
    const odd = fc.constantFrom(...'\'"\\$`;&|<>(){}[]*?!#~ \t\n\u001b%=-');
    const word = fc.oneof(fc.string(), fc.string({ unit: fc.oneof(odd, fc.string({ unit: 'binary', maxLength: 2 })) }));
    const words = fc.array(
      word.map((text) => Buffer.from(text.replaceAll('\0', '')).toString()),
      { maxLength: 6 },
    );
    fc.assert(
      fc.property(words, (list) => {
        const text = commandText(['show', ...list], 'linux');
        expect(text).not.toMatch(/[^\P{Cc}\n]/u);
        expect(wordsOf(text)).toEqual(list);
      }),
      { numRuns: 60 },
    );
    expect(readdirSync(root)).toEqual([]);
  });

  it('is not quoted without need, and in double quotes on Windows', () => {
    expect(commandText(['drmas', 'resume', 'runs/math-1', '--set', 'a.b=1'], 'linux')).toBe(
      'drmas resume runs/math-1 --set a.b=1',
    );
    expect(commandText(['drmas', 'report', 'runs\\a b', 'C:\\runs\\c'], 'win32')).toBe(
      'drmas report "runs\\a b" C:\\runs\\c',
    );
  });
});
