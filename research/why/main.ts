/**
 * Which episode taught this? Replays a step of a run from the checkpoint before it, learns from it again without one
 * group of episodes at a time and without each agent, and prints by how much each made the answers more likely. The run
 * stays as it is. What it can and cannot tell: docs/research/why.md.
 *
 *     npx tsx research/why/main.ts runs/first --step 120 --agent solver
 *     npx tsx research/why/main.ts runs/first --step 120 --task t17 --answer 42 --verify 16 --episodes
 */
import { parseArgs } from 'node:util';
import { whyLines } from './lines.js';
import { why } from './why.js';

const text = { type: 'string' } as const;
const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: {
    ...{ step: text, until: text, agent: text, task: text, answer: text, tasks: text, samples: text, verify: text },
    ...{ estimator: text, recipe: text, threads: text, episodes: { type: 'boolean' }, json: { type: 'boolean' } },
  },
});
const { agent, task, answer, estimator, recipe, episodes, json } = values;
const whole = (given: string | undefined) => (given === undefined ? undefined : Number(given));
const found = await why(positionals[0] ?? '', {
  ...{ agent, task, answer, estimator, recipe, episodes },
  ...{ step: whole(values.step), until: whole(values.until), verify: whole(values.verify) },
  ...{ tasks: whole(values.tasks), samples: whole(values.samples), threads: whole(values.threads) },
  onNotice: (message) => console.error(message),
});
console.log(json === true ? JSON.stringify(found) : whyLines(found, process.stdout.columns ?? 100).join('\n'));
