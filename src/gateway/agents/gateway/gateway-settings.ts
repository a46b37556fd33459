import { serverUrl } from '@drmas/engine/requests';
import { z } from 'zod';

export const gatewaySchema = z.strictObject({
  host: z
    .string()
    .min(1)
    .default('127.0.0.1')
    .describe('The address that the gateway listens at. The default is open only to this machine.'),
  port: z.int().min(0).max(65_535).default(0).describe('The port that the gateway listens at; 0 takes a free one.'),
  publicUrl: serverUrl('the gateway, such as https://agents.example', 'a proxy before it')
    .optional()
    .describe(
      'The URL at which agents reach the gateway, if it is not `http://<host>:<port>`: from a container, through ' +
        'a proxy.',
    ),
  maxCalls: z
    .int()
    .min(1)
    .optional()
    .describe(
      'The calls that one episode may make through the gateway; by default `training.maxTurns`. The next ' +
        'call gets a text once that says so, which ends the loops of most agents. It does not count as a turn.',
    ),
});

export type GatewaySettings = z.output<typeof gatewaySchema>;
