import { z } from 'zod';
import { Secret } from '../host.js';

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

/**
 * The key for a server in a recipe.
 * @param server The server's name in messages
 * @param variable The environment variable that holds the default key
 */
export const serverKey = (server: string, variable: string) =>
  z
    .string()
    .min(1)
    .transform((text) => new Secret(text))
    .optional()
    .describe(
      `The key for the ${server}. Default: ${variable} of the environment. It is never written to recipe.json, events ` +
        'or messages, and `--set` refuses it.',
    );
