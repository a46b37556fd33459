import { nodeHost } from '../../../platform/node-host.js';
import { runWorker } from '../../../run/queue/queue-worker.js';
import { INTERRUPTED } from '../../command-context.js';
import { defineCommand, optionalArgument } from '../../define-command.js';
import { integer, requiredText, text } from '../../flags.js';

const QUEUE = 'drmas';
const EPISODES = 16;

/** Plays episodes of runs on a queue. */
export const worker = defineCommand({
  name: 'worker',
  description: 'play episodes of a run whose rollouts are on a queue',
  details:
    'plays episodes for the run that has the queue (`rollout: { type: "queue" }`), with the tools of this machine and the policies of the run. Waits for the next run when one is over. `--url`, `--queue`, `--concurrency`',
  arguments: [optionalArgument('recipe', "the recipe's file on this machine (default: where the run has it)")],
  flags: {
    url: requiredText('redis', 'address of Redis, such as redis://127.0.0.1:6379; its password is REDIS_PASSWORD'),
    queue: text('name', `name of the queue (default: ${QUEUE})`),
    concurrency: integer(1, `episodes at once (default: ${EPISODES})`),
  },
  examples: ['drmas worker --url redis://127.0.0.1:6379', 'drmas worker ./recipe.ts --url redis://queue:6379'],
  async run({ stderr, signal }, [recipe], { url, queue = QUEUE, concurrency = EPISODES }) {
    const notify = (message: string) => void stderr.write(`${message}\n`);
    await runWorker({ url, queue, recipe, concurrency }, nodeHost({ notify, signal }));
    return INTERRUPTED;
  },
});
