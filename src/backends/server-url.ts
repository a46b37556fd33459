import { z } from 'zod';

/** The address of a server in a recipe. @param expected The end of the message where it is none, with an example */
export const serverUrl = (expected: string) =>
  z
    .url({ protocol: /^https?$/, error: `expected the URL of ${expected}` })
    .refine((url) => !/^\w+:\/\/[^/]*@/.test(url), 'has a password in it, which recipe.json would keep; use `apiKey`');
