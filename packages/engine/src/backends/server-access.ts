import { z } from 'zod';
import { Secret } from '../host.js';

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
