import { shellWord } from '../core/format.js';

/**
 * A command as a person can paste it into a shell: each word stays one word, whatever its characters. On Windows words
 * are quoted for its command prompt and for PowerShell. Every message that prints a command uses this function.
 */
export function commandText(words: readonly string[], platform: NodeJS.Platform = process.platform): string {
  return words.map(platform === 'win32' ? windowsWord : shellWord).join(' ');
}

/** File names on Windows have no double quotes. */
const windowsWord = (word: string) => (/^[\w@%+=:,./\\-]+$/.test(word) ? word : `"${word}"`);
