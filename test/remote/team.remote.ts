/** A team of two agents with a policy each learns on a real server. A run continues after the server was restarted. */
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { RunEvent } from '@drmas/engine/events';
import { mean } from '@drmas/engine/math';
import { checkpoint, lora } from '@drmas/engine/model';
import { loadPolicy } from '@drmas/engine/node';
import { nodeFiles } from '@drmas/engine/platform';
import { tinker } from '@drmas/tinker';
import { afterAll, beforeAll, describe, expect, inject, it } from 'vitest';
import { z } from 'zod';
import { defineRecipe } from '../../src/method/recipe/define.js';
import { readEpisodes } from '../../src/method/store/episode-files.js';
import { resume, train } from '../../src/runs/run/api.js';
import { arithmetic } from '../../src/teams/tasks/generated/arithmetic.js';
import { agent } from '../../src/teams/team/agent.js';
import { defineTeam } from '../../src/teams/team/team.js';
import { drmas } from '../support/command-line.js';
import { SkyrlServer } from './server.js';

const remote = inject('remote');

/**
 * Share of the text that is plain ASCII: a third of random bytes, so there is something to learn from the
 * start.
 */
const plain = (text: string) => (text.match(/[ -~]/g)?.length ?? 0) / Math.max(1, [...text].length);

/**
 * All prompts and answers together have less than 32 tokens, the shortest length that the server pads to: one shape to
 * compile.
 */
const team = defineTeam({
  name: 'plain-speakers',
  task: z.object({ question: z.string(), answer: z.string() }),
  agents: {
    solver: agent({ sampling: { maxTokens: 8 } }),
    verifier: agent({ sampling: { maxTokens: 8 } }),
  },
  async play({ task, agents: { solver, verifier } }) {
    const draft = await solver(task.question.slice(0, 2));
    const verdict = await verifier(String(Math.round(9 * plain(draft.text))));
    return { draft: draft.text, verdict: verdict.text };
  },
  reward: ({ outcome: { draft, verdict } }) => ({
    team: (plain(draft) + plain(verdict)) / 2,
    agents: { solver: plain(draft), verifier: plain(verdict) },
  }),
});

const recipe = (url: string, model: string) =>
  defineRecipe({
    name: 'remote-team',
    team,
    tasks: arithmetic({ operations: [1, 2], warmStartOperations: [1, 2], top: 19 }),
    model: lora(checkpoint(model), { rank: 8 }),
    backend: tinker({ url }),
    policies: {
      solver: { optimizer: { learningRate: 3e-2 }, warmupSteps: 0 },
      verifier: { optimizer: { learningRate: 2e-2 }, warmupSteps: 0 },
    },
    training: { steps: 10, tasksPerStep: 2, groupSize: 8, checkpointEvery: 5 },
    evaluation: { every: 1000, tasks: 2, samples: 2 },
  });

describe.skipIf('unavailable' in remote)('a team on a real server', () => {
  let root: string;
  beforeAll(async () => {
    root = await mkdtemp(join(tmpdir(), 'drmas-remote-team-'));
  });
  afterAll(() => rm(root, { recursive: true, force: true }));

  it('learns in ten steps, with the server killed after the fifth, and is brought home', async () => {
    if ('unavailable' in remote) return;
    const { python, model } = remote;
    const options = { python, model, directory: join(root, 'server'), adapters: 8, rank: 8 };
    const run = join(root, 'run');
    const first = await SkyrlServer.start(options);
    const definition = recipe(first.url, model);
    const controller = new AbortController();
    const sink = { write: ({ type }: RunEvent) => type === 'checkpoint' && controller.abort(new Error('enough')) };
    try {
      const stopped = train(definition, { run, sinks: [sink], signal: controller.signal });
      await expect(stopped).rejects.toThrow('enough');
    } finally {
      await first.stop();
    }

    const second = await SkyrlServer.start(options, Number(new URL(first.url).port));
    try {
      const { events } = await resume(run, definition);
      const steps = events.flatMap((event) => (event.type === 'step' ? [event] : []));
      expect(steps.map(({ step }) => step)).toEqual([1, 2, 3, 4, 5, 6, 7, 8, 9, 10]);
      const rewards = steps.map(({ reward }) => reward?.mean ?? Number.NaN);
      console.log(`reward of ten steps: ${rewards.map((reward) => reward.toFixed(2)).join(' ')}`);
      expect(mean(rewards.slice(-3))).toBeGreaterThan(mean(rewards.slice(0, 3)) + 0.1);
      expect(events.at(-1)).toMatchObject({ type: 'run.finished', reason: 'completed' });

      const to = join(root, 'solver');
      // A program made the run, so nobody has typed the address of its server yet.
      const words = [
        'export',
        run,
        '--agent',
        'solver',
        '--to',
        to,
        '--format',
        'peft',
        '--allow-endpoint',
        second.url,
      ];
      const { code, err } = await drmas(words);
      // The program says what it will send where before it sends it, and sends nothing else.
      expect({ code, err }).toEqual({ code: 0, err: `${second.url} is asked for the weights, with no key\n` });
    } finally {
      await second.stop();
    }

    // Our own engine gives its words the log-probs that the server gave.
    const local = await loadPolicy(join(root, 'solver'), { threads: 1 });
    const episodes = await readEpisodes(nodeFiles, join(run, 'episodes', 'evaluation-000010.jsonl'));
    const turns = episodes.flatMap((episode) => episode.turns).filter(({ agent }) => agent === 'solver');
    expect(turns.length).toBeGreaterThan(0);
    for (const { prompt, response, logprobs } of turns)
      for (const [t, logprob] of Array.from(await local.logprobs([...prompt], [...response])).entries())
        expect(logprob).toBeCloseTo(logprobs[t] ?? Number.NaN, 3);
    await local.dispose();
  });
});
