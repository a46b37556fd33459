import { z } from 'zod';

/** Fields of a request that say what is asked of whom; everything else may be added or taken away. */
const FIXED = ['model', 'messages', 'stream', 'n'];

/** An OpenAI-compatible endpoint as a recipe names it. */
export const endpointSchema = z.strictObject({
  type: z.literal('endpoint'),
  /** Up to and with the version: `http://127.0.0.1:8000/v1`. */
  url: z
    .url({ protocol: /^https?$/, error: 'expected the URL of an endpoint, such as http://127.0.0.1:8000/v1' })
    .refine((url) => !/^\w+:\/\/[^/]*@/.test(url), 'has a password in it, which recipe.json would keep; use `apiKey`'),
  /** As the server calls it. */
  model: z.string().min(1),
  /** By default OPENAI_API_KEY of the environment; '' sends none. Never written anywhere. */
  apiKey: z.string().optional(),
  /** How long one attempt may take. */
  timeoutMs: z.int().min(1).default(60_000),
  /** Repetitions of a request that found no server, timed out, or met 408, 409, 429 or 5xx. */
  retries: z.int().min(0).default(3),
  /** Requests at the same time; further ones wait. */
  concurrency: z.int().min(1).default(8),
  /** Further fields of every request, such as `{ reasoning_effort: 'low' }`; null leaves one out that would be sent. */
  body: z
    .record(z.string(), z.json())
    .refine((body) => FIXED.every((key) => !(key in body)), `cannot set ${FIXED.join(', ')}`)
    .default({}),
});

export type EndpointSpec = z.output<typeof endpointSchema>;
export type EndpointOptions = Omit<z.input<typeof endpointSchema>, 'type'>;
