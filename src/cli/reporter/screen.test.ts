import { Secret, visible } from '@drmas/engine/host';
import { describe, expect, it } from 'vitest';
import { guardedStream, tone } from './screen.js';

function written(...texts: string[]): string {
  let all = '';
  const stream = guardedStream({ write: (text: string) => (all += text) }, [new Secret('sk-very-secret')]);
  for (const text of texts) stream.write(text);
  return all;
}

describe('what reaches the screen', () => {
  it('is the text, its tones, and the return with which a line of progress begins', () => {
    const coloured = tone({ colour: true }, 'red', 'no');
    expect(written('plain\n', `\r1/60 ${coloured}`)).toBe(`plain\n\r1/60 ${coloured}`);
  });

  it.each([
    ['clears the screen', '\u001b[2J'],
    ['moves the cursor', '\u001b[H'],
    ['hides text', '\u001b[8m'],
    ['sets the title', '\u001b]0;owned\u0007'],
    ['writes to the clipboard', '\u001b]52;c;b3duZWQ=\u001b\\'],
    ['begins an escape in one character', '\u009b2J'],
    ['goes back over what was written', 'all is well\rnot\b\b\b'],
  ])('%s no more', (_, text) => {
    const line = written(`episode failed: ${text}\n`);
    expect(line).toBe(`${visible(line.trimEnd())}\n`);
  });

  it('has no keys in it', () => {
    expect(written('Bearer sk-very-secret')).toBe('Bearer [secret]');
  });
});
