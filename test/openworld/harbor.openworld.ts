/**
 * An agent of Harbor plays over the gateway: the package `openenv` serves a task of Harbor's, and the terminal agent
 * Terminus 2 solves it with the run's policy as its model.
 */
import { spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { mkdir, writeFile } from 'node:fs/promises';
import { createServer } from 'node:net';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { tinyDecoder } from '@drmas/engine/model';
import { user } from '@drmas/engine/nouns';
import { afterAll, describe, expect, it } from 'vitest';
import { z } from 'zod';
import { defineRecipe } from '../../src/method/recipe/define.js';
import { resolveRecipe } from '../../src/runs/composition/resolve-recipe.js';
import { openEnv } from '../../src/teams/tasks/worlds/open-env.js';
import { agent } from '../../src/teams/team/agent.js';
import { defineTeam } from '../../src/teams/team/team.js';
import { pythonEnvironment } from '../support/python-environment.js';
import { takesTime } from '../support/time-and-chance.js';
import { eventsOf, stepsOf, temporaryRoot, trainTiny } from '../support/tiny-run.js';

const environment =
  spawnSync('tmux', ['-V']).status === 0
    ? await pythonEnvironment({
        name: 'harbor',
        requirements: new URL('harbor/requirements.txt', import.meta.url),
        least: 12,
        what: 'harbor, openenv and asciinema (0.6 GB)',
      })
    : { unavailable: 'tmux, in which the agent works, is not here' };
const python = 'python' in environment ? environment.python : '';
if ('unavailable' in environment) console.log(`SKIPPED: Harbor's agents, because ${environment.unavailable}`);

const root = temporaryRoot();
const children: ReturnType<typeof spawn>[] = [];
afterAll(async () => {
  for (const child of children) {
    child.kill();
    if (child.exitCode === null) await once(child, 'exit'); // or it would still write to the temporary folder
  }
});

/**
 * A task of Harbor's: it pays 1 if the last answer is 2. A container would have its folders at the root. The agent ends
 * without waiting for its last command, so the verifier waits for the second answer.
 */
const files = {
  'task.toml': 'schema_version = "1.4"\n',
  'instruction.md': 'Append 1 or 2 to /app/answer.\n',
  'tests/test.sh': `#!/bin/bash
cd "$(dirname "$0")/.."
for _ in {1..300}; do [ "$(wc -l < app/answer)" -ge 2 ] && break; sleep 0.1; done
[ "$(tail -n 1 app/answer)" = 2 ] && reward=1 || reward=0
echo $reward > logs/verifier/reward.txt
`,
};

async function writeDataset(): Promise<string> {
  const dataset = join(root, 'dataset');
  for (const folder of ['environment', 'tests']) await mkdir(join(dataset, 'tasks/digit', folder), { recursive: true });
  for (const [name, text] of Object.entries(files)) await writeFile(join(dataset, 'tasks/digit', name), text);
  return dataset;
}

async function freePort(): Promise<number> {
  const server = createServer().listen(0, '127.0.0.1');
  await once(server, 'listening');
  const address = server.address();
  server.close();
  await once(server, 'close');
  return typeof address === 'object' ? (address?.port ?? 0) : 0;
}

/** Starts `openenv harbor serve`; resolves to its address. */
async function serve(dataset: string): Promise<string> {
  const [port, capturePort] = [await freePort(), await freePort()];
  const script = fileURLToPath(new URL('harbor/no_sandbox.py', import.meta.url));
  const addresses = ['--host', '127.0.0.1', '--port', `${port}`, '--capture-port', `${capturePort}`];
  const words = ['-W', 'ignore', script, 'harbor', 'serve', ...addresses, '--expose', 'direct', '--dataset', dataset];
  const offline = { HARBOR_TELEMETRY: '0', HF_HUB_OFFLINE: '1', LITELLM_LOCAL_MODEL_COST_MAP: 'True' };
  const places = { HOME: root, TMPDIR: root, OPENENV_HARBOR_TRIALS_DIR: join(root, 'trials') };
  const child = spawn(python, words, { cwd: root, env: { ...process.env, ...offline, ...places } });
  children.push(child);
  let output = '';
  for (const stream of [child.stdout, child.stderr]) stream.on('data', (text) => (output += text));
  for (;;) {
    const answer = await fetch(`http://127.0.0.1:${port}/health`).catch(() => undefined);
    if (answer?.ok) return `http://127.0.0.1:${port}`;
    if (child.exitCode !== null) throw new Error(`the server ended with ${child.exitCode}: ${output.slice(-2000)}`);
    await takesTime(200);
  }
}

/** The turns of a rollout that `openenv` has captured: it sits between the agent and the gateway. */
const rolloutSchema = z.object({
  ok: z.boolean(),
  error: z.string().nullish(),
  rollout_type: z.string(),
  capture_level: z.string(),
  reward: z.number(),
  turns: z.array(
    z.object({
      prompt_token_ids: z.array(z.int()),
      completion_token_ids: z.array(z.int()),
      per_token_logps: z.array(z.number()),
      trainable: z.boolean(),
    }),
  ),
});

/** The agent's whole answer but the digit, in two symbols: a tiny model has three tokens to write. */
const answer = [
  '{"analysis":"","plan":"","commands":[{"keystrokes":"echo ',
  ' >> answer\\n","duration":0.1}],"task_complete":true}',
] as const;
const printable = Array.from({ length: 95 }, (_, i) => String.fromCharCode(32 + i));

describe.skipIf(python === '')("Harbor's agent Terminus 2", () => {
  it("plays over the gateway, earns its verifier's reward, and its turns are trained", async () => {
    const dataset = await writeDataset();
    const harbor = openEnv({
      url: await serve(dataset),
      timeoutMs: 500_000,
      splits: { train: dataset, test: dataset },
    });
    const played: { readonly rollout: z.output<typeof rolloutSchema>; readonly turns: readonly unknown[] }[] = [];
    const team = defineTeam({
      name: 'harbor',
      task: harbor.task,
      agents: { solver: agent({ sampling: { maxTokens: 8, temperature: 0.5 } }) },
      async play({ task, gateway, signal }) {
        const world = await harbor.open({ task, signal });
        const model = { llm_url: `${gateway.urlOf('solver')}/v1`, model: 'solver', api_key: gateway.secret };
        const order = { split: task.split, task_index: task.index, harness: 'terminus-2', sandbox: 'docker' };
        const text = await world.call({
          name: 'run_rollout',
          arguments: JSON.stringify({ ...order, ...model, purpose: 'train' }),
        });
        return rolloutSchema.parse(JSON.parse(text));
      },
      reward({ outcome: rollout, episode: { turns } }) {
        played.push({ rollout, turns });
        return rollout.reward;
      },
    });
    const definition = defineRecipe({
      name: 'harbor',
      team,
      tasks: {
        ...harbor,
        trace: (random) => {
          const noise = Array.from({ length: 200 }, () => printable[random.integer(0, 94)]).join('');
          return { agent: 'solver', messages: [user(noise)], response: answer.join(random.chance(0.5) ? '1' : '2') };
        },
      },
      model: tinyDecoder({
        width: 24,
        layers: 1,
        heads: 2,
        feedForward: 48,
        context: 16_384,
        tokenizer: {
          type: 'symbols',
          symbols: ['<|pad|>', '<|end|>', '<|ask|>', '\n', '\t', ...answer, ...printable],
          stop: '<|end|>',
          endOfUser: '<|ask|>',
          endOfAssistant: '<|end|>',
        },
      }),
      warmStart: { steps: 200, batch: 16, learningRate: 1e-2 },
      gateway: {},
      training: { steps: 1, tasksPerStep: 1, groupSize: 8 },
      evaluation: { every: 100, tasks: 1, samples: 1 },
    });
    const run = await trainTiny(root, resolveRecipe(definition));
    expect((await eventsOf(run)).filter(({ type }) => type === 'episode.failed')).toEqual([]);

    // The agent says twice that it is done, because it is asked once whether it is sure. What it wrote last counts.
    expect(played.length).toBeGreaterThanOrEqual(8);
    for (const { rollout, turns } of played) {
      expect(rollout.turns.map(({ trainable }) => trainable)).toEqual([true, true]);
      expect(rollout).toMatchObject({ ok: true, rollout_type: 'train', capture_level: 'tokens' });
      expect(turns.length).toBe(2);
      expect(turns).toMatchObject(
        rollout.turns.map(
          ({ prompt_token_ids: prompt, completion_token_ids: response, per_token_logps: logprobs }) => ({
            agent: 'solver',
            prompt,
            response,
            logprobs,
          }),
        ),
      );
      expect(turns[1]).toMatchObject({ text: answer.join(rollout.reward === 1 ? '2' : '1') });
    }
    const [step] = await stepsOf(run);
    expect(step?.agents.solver).toMatchObject({ turns: 16, maxRatioDeviation: expect.closeTo(0, 6) });
    const rewards = new Set(played.slice(0, 8).map(({ rollout }) => rollout.reward));
    expect((step?.policies.solver?.gradientNorm ?? 0) > 0).toBe(rewards.size > 1);
  });
});
