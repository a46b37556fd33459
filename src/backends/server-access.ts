import { z } from 'zod';
import { Secret } from '../core/secret.js';

/** The address of a server in a recipe. @param expected The end of the message where it is none, with an example */
export const serverUrl = (expected: string) =>
  z
    .url({ protocol: /^https?$/, error: `expected the URL of ${expected}` })
    .refine((url) => !/^\w+:\/\/[^/]*@/.test(url), 'has a password in it, which recipe.json would keep; use `apiKey`');

/**
 * The key for a server in a recipe. @param server What the server is called
 * @param variable The environment variable that holds the key where none is given
 */
export const serverKey = (server: string, variable: string) =>
  z
    .string()
    .min(1)
    .transform((text) => new Secret(text))
    .optional()
    .describe(
      `The key for the ${server}; where it is not given, ${variable} of the environment. It is never written to ` +
        'recipe.json, events or messages, and `--set` refuses it.',
    );
