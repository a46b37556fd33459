import { z } from 'zod';
import { serverUrl } from '../requests.js';

/** Fields of a request that a recipe cannot set: the model, the conversation and the form of the reply. */
const FIXED = ['model', 'messages', 'stream', 'n'];

export const priceSchema = z
  .strictObject({
    read: z.number().min(0).default(0).describe('The price of a million tokens of prompts.'),
    write: z.number().min(0).default(0).describe('The price of a million tokens of responses.'),
  })
  .optional()
  .describe('The price of a million tokens, in your currency. With a price, evaluations and steps report the cost.');

/** An OpenAI-compatible endpoint as a recipe names it. */
export const endpointSchema = z.strictObject({
  type: z.literal('endpoint'),
  url: serverUrl('an endpoint, such as http://127.0.0.1:8000/v1')
    .refine((url) => !/\/completions\/*$/.test(url), 'expected the URL up to the version, without /chat/completions')
    .describe('The URL up to and with the version, such as `http://127.0.0.1:8000/v1`.'),
  model: z.string().min(1).describe("The server's name of the model."),
  apiKey: z
    .string()
    .optional()
    .describe(
      "The key for the server. Default: OPENAI_API_KEY of the environment. `''` sends none. It is never written to a " +
        'file, so `--set` refuses it.',
    ),
  timeoutMs: z.int().min(1).default(60_000).describe('Milliseconds that one attempt may take.'),
  retries: z
    .int()
    .min(0)
    .default(3)
    .describe(
      'Retries of a request that found no server, timed out, or got status 408, 409, 429 or 5xx. It obeys `Retry-After`, up to 120 s.',
    ),
  concurrency: z
    .int()
    .min(1)
    .default(8)
    .describe('The most requests at the same time, for all agents with this endpoint together. Further ones wait.'),
  price: priceSchema,
  body: z
    .record(z.string(), z.json())
    .refine((body) => FIXED.every((key) => !(key in body)), `cannot set ${FIXED.join(', ')}`)
    .default({})
    .describe("Additional fields of all requests, such as `{ reasoning_effort: 'low' }`. Null removes a usual field."),
});

export type EndpointSpec = z.output<typeof endpointSchema>;
