import { z } from 'zod';

const hasNone = (parts: readonly ('username' | 'password' | 'search' | 'hash')[]) => (text: string) =>
  !URL.canParse(text) || parts.every((part) => new URL(text)[part] === '');

/**
 * The address of a server, to which drmas adds paths.
 * @param expected The end of the error message, with an example
 * @param key Where a key for the server belongs
 */
export const serverUrl = (expected: string, key = '`apiKey`') =>
  z
    .url({ protocol: /^https?$/, error: `expected the URL of ${expected}` })
    .refine(hasNone(['username', 'password']), `has a password in it, which recipe.json would keep; use ${key}`)
    .refine(
      hasNone(['search', 'hash']),
      `expected a URL without ? and #, since the paths of requests are added to its end; a key goes into ${key}`,
    );
