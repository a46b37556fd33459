import { DeviceError, EndpointError } from '@drmas/engine/errors';
import { type PlayProgress, progressListener, type RunListener } from '@drmas/engine/host';
import type { Task } from '@drmas/engine/nouns';
import { describe, expect, it } from 'vitest';
import { z } from 'zod';
import { eventually, onFakeClock, takesTime, timeOfDay } from '../../../test/support/time-and-chance.js';
import { scriptedContext } from '../../runs/testing/play-scripted.js';
import { type Script, scriptedSampler } from '../../runs/testing/scripted-sampler.js';
import { agent } from '../team/agent.js';
import { defineTeam, type Team } from '../team/team.js';
import { inProcessExecutor } from './executor.js';
import { applyFailureRule } from './score.js';

/** A team of one agent; `onEnd` receives each episode that comes to its end, as `task/sample`. */
const teamWith = (onEnd: (episode: string) => void) =>
  defineTeam({
    task: z.object({ n: z.number() }),
    agents: { echo: agent() },
    async play({ task, agents: { echo } }) {
      const { text } = await echo(`${task.n}`);
      if (text === 'bad') throw new Error('bad answer');
      return text;
    },
    reward({ outcome, episode }) {
      onEnd(`${episode.task.id}/${episode.sample}`);
      return outcome === 'right';
    },
  }) as Team;

const team = teamWith(() => {});

const tasks = [1, 2, 3].map((n) => ({ id: `task ${n}`, data: { n } }));

const play = (script: Script, more: { signal?: AbortSignal; team?: Team; tasks?: Task[] } = {}) => {
  const sampler = scriptedSampler(script);
  const executor = inProcessExecutor(scriptedContext(team, sampler));
  const groups = executor.playGroups({ team, tasks, groupSize: 4, phase: 'training', step: 1, ...more });
  return { groups, sampler };
};

function deferred() {
  let resolve = () => {};
  const promise = new Promise<void>((settle) => {
    resolve = settle;
  });
  return { promise, resolve };
}

describe('the in-process executor', () => {
  it('tells its observer how many episodes are over, and how many of them failed', async () => {
    const progress: PlayProgress[] = [];
    const sampler = scriptedSampler(({ index }) => (index % 6 === 0 ? 'bad' : 'right'));
    const listener = progressListener((each) => progress.push(each));
    const executor = inProcessExecutor({ ...scriptedContext(team, sampler), listener });
    await executor.playGroups({ team, tasks, groupSize: 4, phase: 'evaluation', step: 7 });
    expect(progress.map(({ done }) => done)).toEqual(Array.from({ length: 13 }, (_, done) => done));
    expect(progress.at(-1)).toEqual({ phase: 'evaluation', step: 7, episodes: 12, done: 12, failed: 2 });
  });

  it('plays as many episodes of each task as it is told', async () => {
    const progress: PlayProgress[] = [];
    const listener = progressListener((each) => progress.push(each));
    const context = {
      ...scriptedContext(
        team,
        scriptedSampler(() => 'right'),
      ),
      listener,
    };
    const request = { team, tasks, groupSize: [2, 1, 3], phase: 'training', step: 1 } as const;
    const groups = await inProcessExecutor(context).playGroups(request);
    expect(groups.map(({ episodes }) => episodes.map(({ sample }) => sample))).toEqual([[0, 1], [0], [0, 1, 2]]);
    expect(progress.at(-1)).toMatchObject({ episodes: 6, done: 6 });
  });

  it('gives each episode the dates, maps and sets of its task as they were', async () => {
    const data = { due: new Date(0), stock: new Map([['fig', 1]]) };
    const changing = defineTeam({
      task: z.custom<typeof data>(),
      agents: { echo: agent() },
      async play({ task: { due, stock }, agents: { echo } }) {
        const before = [due.getTime(), ...stock.values()];
        due.setTime(1);
        stock.set('fig', 0);
        await echo('x');
        return before;
      },
      reward: () => 0,
    }) as unknown as Team;
    const { groups } = play(() => 'right', { team: changing, tasks: [{ id: 'a', data }] });
    const outcomes = (await groups).flatMap(({ episodes }) => episodes.map(({ outcome }) => outcome));
    expect(outcomes).toEqual([1, 2, 3, 4].map(() => [0, 1]));
    expect(data).toEqual({ due: new Date(0), stock: new Map([['fig', 1]]) });
  });

  it('plays other episodes of a task that comes again', async () => {
    const [one, two] = tasks as [Task, Task];
    const executor = inProcessExecutor(
      scriptedContext(
        team,
        scriptedSampler(() => 'right'),
      ),
    );
    const request = { team, tasks: [one, two, one, one], groupSize: [2, 2, 1, 2], phase: 'training', step: 1 } as const;
    const groups = await executor.playGroups({ ...request, firstSample: 5 });
    expect(groups.map(({ episodes }) => episodes.map(({ sample }) => sample))).toEqual([[5, 6], [5, 6], [7], [8, 9]]);
  });

  it.each([1, 3, 100])('plays at most %i episodes at once, with the same results', async (concurrency) => {
    let [now, most] = [0, 0];
    const sampler = scriptedSampler(async ({ index }) => {
      most = Math.max(most, ++now);
      await takesTime(1);
      now--;
      return index % 5 === 0 ? 'bad' : 'right';
    });
    const executor = inProcessExecutor({ ...scriptedContext(team, sampler), concurrency });
    const groups = await executor.playGroups({ team, tasks, groupSize: 4, phase: 'evaluation', step: 1 });
    expect(groups.flatMap(({ episodes }) => episodes.map(({ sample }) => sample))).toEqual(
      tasks.flatMap(() => [0, 1, 2, 3]),
    );
    expect(most).toBe(Math.min(concurrency, 12));
  });

  it('plays all episodes at once and gives them in order, whatever the order in which they end', async () => {
    const ended: string[] = [];
    const { promise: oneHasEnded, resolve: release } = deferred();
    const { groups, sampler } = play(
      async ({ index }) => {
        if (index % 2 === 0) await oneHasEnded;
        return `answer ${index}`;
      },
      {
        team: teamWith((episode) => {
          ended.push(episode);
          release();
        }),
      },
    );
    expect(sampler.calls).toHaveLength(12); // no call has an answer yet
    const inOrder = (await groups).map(({ task, episodes }) => ({
      task: task.id,
      samples: episodes.map(({ sample }) => sample),
      outcomes: episodes.map(({ outcome }) => outcome),
    }));
    const answers = (from: number) => [0, 1, 2, 3].map((i) => `answer ${from + i}`);
    expect(inOrder).toEqual([
      { task: 'task 1', samples: [0, 1, 2, 3], outcomes: answers(0) },
      { task: 'task 2', samples: [0, 1, 2, 3], outcomes: answers(4) },
      { task: 'task 3', samples: [0, 1, 2, 3], outcomes: answers(8) },
    ]);
    expect(ended).toHaveLength(12);
    expect(ended[0]).toBe('task 1/1');
    expect(new Set(sampler.calls.map(({ request }) => request.key.join())).size).toBe(12);
  });

  it('keeps failed episodes in their groups, to be left out or counted as zero by rule', async () => {
    const { groups } = play(({ index }) => (index < 4 || index === 5 ? 'bad' : 'right'));
    const played = await groups;
    expect(played.map(({ episodes }) => episodes.map(({ failure }) => failure?.reason ?? 'ok'))).toEqual([
      ['error', 'error', 'error', 'error'],
      ['ok', 'error', 'ok', 'ok'],
      ['ok', 'ok', 'ok', 'ok'],
    ]);
    const scores = (rule: 'exclude' | 'zero') =>
      applyFailureRule(played, rule).map(({ task, episodes }) => [task.id, ...episodes.map(({ score }) => score.team)]);
    expect(scores('zero')).toEqual([
      ['task 1', 0, 0, 0, 0],
      ['task 2', 1, 0, 1, 1],
      ['task 3', 1, 1, 1, 1],
    ]);
    expect(scores('exclude')).toEqual([
      ['task 2', 1, 1, 1],
      ['task 3', 1, 1, 1, 1],
    ]);
  });

  it('ends every episode when the run is interrupted, or when an error ends the run', async () => {
    const never: Script = ({ signal }) => new Promise((_, reject) => signal?.addEventListener('abort', reject));
    const controller = new AbortController();
    const interrupted = play(never, { signal: controller.signal });
    setImmediate(() => controller.abort(new Error('Ctrl-C')));
    await expect(interrupted.groups).rejects.toThrow('Ctrl-C');
    expect(interrupted.sampler.calls.every(({ signal }) => signal?.aborted)).toBe(true);

    for (const gone of [new EndpointError('no such key'), new DeviceError('lost', 'the GPU was lost')]) {
      const refused = play((call) => {
        if (call.index === 3) throw gone;
        return never(call);
      });
      await expect(refused.groups).rejects.toBe(gone);
      await eventually(() => refused.sampler.calls.every(({ signal }) => signal?.aborted === true));
    }
  });

  describe('with agents that may not answer yet', () => {
    /** Two episodes of each task: which have begun, and when their calls began. */
    function waiting(script: Script = () => 'right') {
      const began: number[] = [];
      const starts: number[] = [];
      const sampler = scriptedSampler(script);
      const patient = defineTeam({
        task: z.object({ n: z.number() }),
        agents: { echo: agent() },
        async play({ task, agents: { echo } }) {
          began.push(task.n);
          return (await echo(`${task.n}`)).text;
        },
        reward: () => 1,
      }) as Team;
      const listener: RunListener = { episode: () => ({ answered: (_, { start }) => void starts.push(start) }) };
      const begin = (ready: Promise<unknown>, more: { timeoutMs?: number; signal?: AbortSignal } = {}) => {
        const { timeoutMs = 1_000, signal } = more;
        const executor = inProcessExecutor({ ...scriptedContext(patient, sampler), listener, timeoutMs });
        return executor.playGroups({ team: patient, tasks, groupSize: 2, phase: 'training', step: 1, ready, signal });
      };
      return { began, starts, sampler, begin };
    }

    it('begins all episodes up to their first calls, which it times and limits from then on', async () => {
      const { began, starts, sampler, begin } = waiting();
      const { promise, resolve } = deferred();
      const { groups, opened } = await onFakeClock(async (pass) => {
        const playing = begin(promise, { timeoutMs: 40 });
        await eventually(() => began.length === 6);
        await pass(80);
        expect([began, sampler.calls]).toEqual([[1, 1, 2, 2, 3, 3], []]);
        const opened = timeOfDay();
        resolve();
        return { groups: await playing, opened };
      });
      const outcomes = groups.flatMap(({ episodes }) => episodes.map(({ outcome }) => outcome));
      expect(outcomes).toEqual(Array(6).fill('right'));
      expect(starts).toHaveLength(6);
      expect(Math.min(...starts)).toBeGreaterThanOrEqual(opened);

      const slow = waiting(() => new Promise<string>(() => {}));
      const late = await slow.begin(Promise.resolve(), { timeoutMs: 20 });
      const reasons = late.flatMap(({ episodes }) => episodes.map(({ failure }) => failure?.reason));
      expect(reasons).toEqual(Array(6).fill('timeout'));
    });

    it('ends them when the run is interrupted, and begins no others', async () => {
      const { began, sampler, begin } = waiting();
      const controller = new AbortController();
      const groups = begin(new Promise(() => {}), { signal: controller.signal });
      controller.abort(new Error('Ctrl-C'));
      await expect(groups).rejects.toThrow('Ctrl-C');
      expect([began, sampler.calls]).toEqual([[1, 1], []]);
    });
  });

  it('refuses a group of none', async () => {
    const executor = inProcessExecutor(
      scriptedContext(
        team,
        scriptedSampler(() => ''),
      ),
    );
    const request = { team, tasks, groupSize: 0, phase: 'training', step: 0 } as const;
    await expect(executor.playGroups(request)).rejects.toThrow('groupSize: expected a positive integer, got 0');
    const wrong = (groupSize: number[]) => executor.playGroups({ ...request, groupSize });
    await expect(wrong([1, 2, 0.5])).rejects.toThrow('groupSize: expected a positive integer, got 0.5');
    await expect(wrong([1, 2])).rejects.toThrow('groupSize: expected one for each of 3 tasks, got 2');
  });
});
