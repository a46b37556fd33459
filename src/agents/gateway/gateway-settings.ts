import { z } from 'zod';

/** Where a run's gateway listens, and how much it answers. */
export const gatewaySchema = z.strictObject({
  host: z
    .string()
    .min(1)
    .default('127.0.0.1')
    .describe('The address that the gateway listens at. The default is reached from this machine alone.'),
  port: z.int().min(0).max(65_535).default(0).describe('The port that the gateway listens at; 0 takes a free one.'),
  publicUrl: z
    .url({ protocol: /^https?$/ })
    .optional()
    .describe(
      'The URL by which agents reach the gateway, where that is another than `http://<host>:<port>`: from a ' +
        'container, through a proxy.',
    ),
  maxCalls: z
    .int()
    .min(1)
    .optional()
    .describe(
      'The calls that one episode may make through the gateway; by default `training.maxTurns`. The next one is ' +
        'answered once with a text that says so, which ends the loops of most agents, and is no turn.',
    ),
});

export type GatewaySettings = z.output<typeof gatewaySchema>;
