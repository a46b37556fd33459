import { execFile } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { agent, arithmetic, boxed, defineRecipe, defineTeam, oneOf, tinyDecoder } from 'drmas';
import { z } from 'zod';

const run = promisify(execFile);
const script = fileURLToPath(new URL('agent.sh', import.meta.url));

const team = defineTeam({
  name: 'shell-agent',
  task: z.object({ question: z.string(), answer: z.string() }),
  agents: {
    solver: agent({ system: 'Solve', parse: boxed, sampling: { maxTokens: 30 }, invalidPenalty: 0.1 }),
    verifier: agent({ system: 'Judge', parse: oneOf('<approve>', '<reject>'), sampling: { maxTokens: 10 } }),
  },
  async play({ task, gateway, signal }) {
    const env = { ...process.env, ...gateway.env };
    const { stdout } = await run('bash', [script, task.question], { env, signal });
    const { solution, verdict } = z.object({ solution: z.string(), verdict: z.string() }).parse(JSON.parse(stdout));
    return { answer: boxed(solution), verdict: verdict.trim() };
  },
  reward: ({ outcome: { answer, verdict }, task }) => ({
    team: answer === task.answer,
    agents: { verifier: (answer === task.answer) === (verdict === '<approve>') },
  }),
});

export default defineRecipe({
  team,
  tasks: arithmetic({ operations: [1, 2], warmStartOperations: [1, 2], top: 19 }),
  model: tinyDecoder({ width: 48, layers: 2, heads: 3, feedForward: 128, context: 96, tokenizer: { type: 'bytes' } }),
  gateway: {},
  warmStart: { steps: 500 },
  training: { steps: 10, tasksPerStep: 4, groupSize: 4 },
  evaluation: { every: 10, tasks: 20, samples: 1 },
});
