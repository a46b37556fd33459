import { nodeHost } from '@drmas/engine/platform';
import { runWorker } from '../../../cluster/queue.js';
import { INTERRUPTED } from '../../command-context.js';
import { defineCommand, optionalArgument } from '../../define-command.js';
import { integer, requiredText, text } from '../../flags.js';

const QUEUE = 'drmas';
const EPISODES = 16;

export const worker = defineCommand({
  name: 'worker',
  description: 'play episodes for a run that puts its rollouts on a queue',
  details:
    'plays episodes for a run on a queue (`rollout: { type: "queue" }`), with the tools of this machine and the policies of the run. It waits for the next run when one ends. Runs and workers have the same key: `DRMAS_QUEUE_KEY`, or a file that drmas makes for you on this machine',
  arguments: [
    optionalArgument('recipe', "the recipe's file on this machine (default: the run names it, see --recipes)"),
  ],
  flags: {
    url: requiredText('redis', 'address of Redis, such as redis://127.0.0.1:6379; set its password in REDIS_PASSWORD'),
    queue: text('name', `name of the queue (default: ${QUEUE})`),
    recipes: text('folder', 'without a file: play recipes below this folder, at the path that the run names'),
    concurrency: integer(1, `concurrent episodes (default: ${EPISODES})`),
  },
  examples: [
    'drmas serve worker --url redis://127.0.0.1:6379 --recipes .',
    'drmas serve worker ./recipe.ts --url redis://queue:6379',
  ],
  async run({ stderr, signal }, [recipe], { url, queue = QUEUE, recipes, concurrency = EPISODES }) {
    const notify = (message: string) => void stderr.write(`${message}\n`);
    await runWorker({ url, queue, recipe, recipes, concurrency }, nodeHost({ notify, signal }));
    return INTERRUPTED;
  },
});
