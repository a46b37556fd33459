// @module-tag verify
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { RunEvent } from '@drmas/engine/events';
import { RandomStream } from '@drmas/engine/math';
import { lora } from '@drmas/engine/model';
import { nodeHost } from '@drmas/engine/platform';
import { describe, expect, it } from 'vitest';
import { z } from 'zod';
import type { RecipeInput } from '../../src/method/recipe/define.js';
import { RunDirectory } from '../../src/method/store/run-directory.js';
import { executeRun } from '../../src/runs/run/execute/execute-run.js';
import { agent } from '../../src/teams/team/agent.js';
import { defineTeam } from '../../src/teams/team/team.js';
import { takesTime, timeForMishaps } from '../support/time-and-chance.js';
import { remoteRecipe, writeSymbolsModel } from '../support/tinker-fake/open.js';
import { TinkerFake } from '../support/tinker-fake/server.js';
import {
  createRun,
  eventsOf,
  filesOf,
  resumedTiny,
  stepsOf,
  temporaryRoot,
  tinyModel,
  tinyRecipe,
  trainTiny,
} from '../support/tiny-run.js';

const root = temporaryRoot();

/** A team whose tool takes the time that the test sets. `inFlight` receives the number of concurrent episodes. */
function slowTeam(latencyMs: (random: number) => number, inFlight: (episodes: number) => void = () => {}) {
  let now = 0;
  const latencies = new RandomStream('latencies');
  return defineTeam({
    name: 'slow digits',
    task: z.object({ question: z.string(), answer: z.string() }),
    agents: { solver: agent({ parse: (text) => /\d/.exec(text)?.[0], sampling: { maxTokens: 6 } }) },
    async play({ task, agents: { solver }, signal }) {
      inFlight(++now);
      try {
        const draft = await solver(task.question);
        await takesTime(latencyMs(latencies.uniform()));
        signal.throwIfAborted();
        // The tokenizer has no symbol for the text of a special token.
        const quoted = draft.text.split('<')[0]?.slice(0, 3);
        return { text: (await solver(quoted || task.question)).text };
      } finally {
        now--;
      }
    },
    reward: ({ outcome: { text } }) => (text.match(/[0-4]/g)?.length ?? 0) / (text.length + 1),
  });
}

const recipe = (staleness: number, latency: (random: number) => number, more: Partial<RecipeInput> = {}) =>
  tinyRecipe({
    team: slowTeam(latency),
    training: { steps: 6, tasksPerStep: 2, groupSize: 4, checkpointEvery: 3 },
    rollout: { staleness },
    ...more,
  });

/** The versions that played each step, from the episodes on disk. */
async function versionsOf(run: RunDirectory, steps: number): Promise<number[][]> {
  return Promise.all(
    Array.from({ length: steps }, async (_, i) => {
      const name = `step-${String(i + 1).padStart(6, '0')}.jsonl`;
      const lines = (await readFile(join(run.path, 'episodes', name), 'utf8')).trimEnd().split('\n');
      type Stored = { readonly turns: readonly { readonly policyVersion: number }[] };
      const all = lines.flatMap((line) => (JSON.parse(line) as Stored).turns.map((turn) => turn.policyVersion));
      return [...new Set(all)];
    }),
  );
}

describe('rollouts that begin ahead of the updates', () => {
  it.each([
    { name: 'a whole decoder', model: tinyModel },
    { name: 'an adapter', model: lora(tinyModel, { rank: 2, alpha: 4 }) },
  ])(
    'are played by the versions of that time, and the run is the same however long tools take: $name',
    async ({ model }) => {
      const fast = await trainTiny(
        root,
        recipe(2, () => 0, { model }),
        { threads: 1 },
      );
      const slow = await trainTiny(
        root,
        recipe(2, (random) => 25 * random, { model }),
        { threads: 2 },
      );
      expect((await eventsOf(slow)).map(withoutThreads)).toEqual((await eventsOf(fast)).map(withoutThreads));
      expect(await filesOf(slow)).toEqual(await filesOf(fast));
      // Version 0 is published at the start. Nothing begins ahead of the checkpoint after step 3.
      expect(await versionsOf(fast, 6)).toEqual([[0], [0], [0], [3], [3], [3]]);
      expect((await stepsOf(fast)).map((step) => step.staleness)).toEqual([0, 1, 2, 0, 1, 2]);
    },
  );

  it('are played by the versions of that time on a server of the Tinker protocol too', async () => {
    const directory = await writeSymbolsModel(root);
    const played = async (behaves: 'hosted' | 'skyrl-jax', latency: (random: number) => number) => {
      const fake = await TinkerFake.start({ directory, behaves });
      const changes = {
        team: slowTeam(latency),
        training: { steps: 4, tasksPerStep: 2, groupSize: 4, checkpointEvery: 3 },
        rollout: { staleness: 1 },
      };
      const backend = { url: fake.url, profile: behaves };
      try {
        return await trainTiny(root, remoteRecipe(directory, backend, changes, ['evaluation.tasks=1']));
      } finally {
        await fake.close();
      }
    };
    const [fast, slow] = [await played('hosted', () => 0), await played('hosted', (random) => 25 * random)];
    expect(await versionsOf(slow, 4)).toEqual([[0], [0], [1], [3]]);
    expect((await stepsOf(slow)).map((step) => step.staleness)).toEqual([0, 1, 1, 0]);
    const learnt = async (run: RunDirectory) => (await stepsOf(run)).map(({ reward, policies }) => [reward, policies]);
    expect(await learnt(slow)).toEqual(await learnt(fast));
    // Where sampling a snapshot puts it in the place of the weights in training, which only the server itself tells.
    await expect(played('skyrl-jax', () => 0)).rejects.toThrow(
      /^rollout.staleness: .* plays the last published weights/,
    );
  });

  it('goes on from a checkpoint as the run that was not interrupted', async () => {
    const of = () => recipe(1, (random) => 5 * random);
    const whole = await trainTiny(root, of());
    expect(await versionsOf(whole, 6)).toEqual([[0], [0], [1], [3], [3], [4]]);
    const resumed = await resumedTiny(root, of(), 3);
    expect((await eventsOf(resumed)).map(withoutThreads)).toEqual((await eventsOf(whole)).map(withoutThreads));
    expect(await filesOf(resumed)).toEqual(await filesOf(whole));
  });

  it('resumes from the last scheduled checkpoint after an interruption', async () => {
    const of = () => recipe(2, (random) => 5 * random);
    const whole = await trainTiny(root, of());
    const run = await createRun(root, of());
    const controller = new AbortController();
    const stop = (event: RunEvent) => void (event.type === 'step' && event.step === 5 && controller.abort());
    const first = await RunDirectory.open(run.path, { listeners: [{ event: stop }] });
    await expect(executeRun(of(), first, nodeHost({ threads: 1, signal: controller.signal }))).rejects.toThrow();
    const again = await RunDirectory.open(run.path);
    const checkpoint = await again.latestCheckpoint();
    expect(checkpoint?.step).toBe(3);
    await again.rewind(checkpoint);
    await executeRun(of(), again, nodeHost({ threads: 1 }), { checkpoint });
    expect(await filesOf(again)).toEqual(await filesOf(whole));
  });

  it('play the episodes of several steps at once, and one step at a time without staleness', async () => {
    const most = async (staleness: number) => {
      let peak = 0;
      const team = slowTeam(
        () => 20,
        (episodes) => {
          peak = Math.max(peak, episodes);
        },
      );
      await trainTiny(
        root,
        recipe(staleness, () => 0, { team }),
      );
      return peak;
    };
    expect(await most(0)).toBe(8);
    expect(await most(2)).toBe(24);
  });

  it('report no staleness of 0, and have the bits of a recipe that does not name it', async () => {
    const [named, plain] = [
      await trainTiny(
        root,
        recipe(0, () => 0),
      ),
      await trainTiny(
        root,
        tinyRecipe({
          team: slowTeam(() => 3),
          training: { steps: 6, tasksPerStep: 2, groupSize: 4, checkpointEvery: 3 },
        }),
      ),
    ];
    expect(await eventsOf(named)).toEqual(await eventsOf(plain));
    expect((await stepsOf(named)).every((step) => !('staleness' in step))).toBe(true);
  });

  it('end with the run', async () => {
    let begun = 0;
    const controller = new AbortController();
    const inFlight = () => {
      if (++begun === 30) controller.abort(new Error('enough'));
    };
    const team = slowTeam(() => 5, inFlight);
    const late = recipe(2, () => 0, { team, evaluation: { every: 100, tasks: 1, samples: 1 } });
    await expect(trainTiny(root, late, { signal: controller.signal })).rejects.toThrow('enough');
    const atTheEnd = begun;
    await timeForMishaps(100);
    expect(begun).toBe(atTheEnd);
  });

  it('are refused beyond four updates without a correction', async () => {
    const { requireRecipe } = {
      requireRecipe: () =>
        trainTiny(
          root,
          recipe(5, () => 0),
        ),
    };
    await expect(requireRecipe()).rejects.toThrow(/^rollout.staleness: above 4 .*loss.importanceCorrection/);
    const corrected = recipe(5, () => 0, { loss: { type: 'ppo-clip', importanceCorrection: {} } });
    await expect(trainTiny(root, corrected)).resolves.toBeDefined();
  });
});

/** Runs record their number of threads. */
function withoutThreads(event: Awaited<ReturnType<typeof eventsOf>>[number]) {
  return event.type === 'run.started' ? { ...event, threads: 0 } : event;
}
