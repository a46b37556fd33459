/** The recipe's section `rollout`: where and how episodes are played. */
import { serverUrl } from '@drmas/engine/requests';
import { z } from 'zod';

export const rolloutSchema = z.strictObject({
  isolate: z
    .union([z.boolean(), z.int().min(1).max(256)])
    .default(false)
    .describe(
      "Whether the team's code runs in its own threads. `true` starts 2 threads, a number starts that " +
        'many. Code that never returns, runs out of memory or ends its thread then fails its own episode ' +
        'only.',
    ),
  staleness: z
    .int()
    .min(0)
    .default(0)
    .describe(
      'The number of updates between the weights that play a step and the weights that learn from it. ' +
        'Rollouts start this many steps ahead, so other episodes are sampled while some wait for tools. With ' +
        '0 no rollout starts ahead.',
    ),
  type: z
    .enum(['program', 'queue'])
    .default('program')
    .describe(
      '`program` plays episodes in this program. `queue` sends them through Redis to workers on any number ' +
        'of machines (`drmas serve worker`).',
    ),
  url: z
    .url({ protocol: /^rediss?$/ })
    .refine((url) => new URL(url).password === '', 'a password belongs into REDIS_PASSWORD of the environment')
    .optional()
    .describe(
      'The address of Redis, such as `redis://127.0.0.1:6379`. Its password is REDIS_PASSWORD of the environment.',
    ),
  queue: z
    .string()
    .regex(/^[\w-]{1,64}$/, 'expected letters, digits, "_" and "-"')
    .default('drmas')
    .describe('The name of the queue. Workers of one queue play for one run at a time.'),
  host: z
    .string()
    .min(1)
    .default('127.0.0.1')
    .describe(
      "The address at which this program answers the workers' requests for tokens. With the default only " +
        'this machine can reach it.',
    ),
  port: z.int().min(0).max(65_535).default(0).describe("The port for the workers' requests. 0 takes a free port."),
  publicUrl: serverUrl('this program, such as https://train.example', 'a proxy before it')
    .optional()
    .describe('The URL at which workers reach this program, if it is not `http://<host>:<port>`.'),
  leaseSeconds: z
    .number()
    .min(1)
    .default(15)
    .describe('If a worker sends no heartbeat for this many seconds, another worker plays its episodes again.'),
});
