// @module-tag verify
import { once } from 'node:events';
import { mkdtemp, symlink } from 'node:fs/promises';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import type { Worker } from 'node:worker_threads';
import { build } from 'esbuild';
import { beforeAll, describe, expect, it, onTestFinished } from 'vitest';
import { loadTeam, resume, train } from '../../src/index.js';
import { RunDirectory } from '../../src/method/store/run-directory.js';
import { registeredExporter } from '../support/otel-exporter.js';
import { eventsOf, filesOf, temporaryRoot, tinyDefinition } from '../support/tiny-run.js';

const root = temporaryRoot();
const recipe = (name: string) => join(root, `${name}.mjs`);

beforeAll(async () => {
  const entryPoints = ['digits', 'ranked', 'hostile'].map((name) =>
    fileURLToPath(new URL(`../fixtures/isolation/${name}.ts`, import.meta.url)),
  );
  const outExtension = { '.js': '.mjs' };
  // One file each, as a thread loads a recipe quickly; what a package does for its files is not there.
  await build({
    entryPoints,
    outdir: root,
    outExtension,
    bundle: true,
    platform: 'node',
    format: 'esm',
    packages: 'external',
  });
  await symlink(fileURLToPath(new URL('../../node_modules', import.meta.url)), join(root, 'node_modules'));
});

/** A place of its own for each run, so that a test can be tried again. */
const newRun = () => mkdtemp(join(root, 'run-'));

async function trained(name: string, set: readonly string[]) {
  const run = await newRun();
  await train(recipe(name), { run, threads: 1, set });
  const log = await RunDirectory.open(run);
  return { log, events: await eventsOf(log), files: await filesOf(log) };
}

describe('a team in threads of its own', () => {
  it('plays the same run bit for bit, whatever the number of threads', async () => {
    for (const [isolate, ...set] of [
      ['true', 'rollout.staleness=0'],
      ['3', 'rollout.staleness=1'],
      ['2', 'advantage={"type":"counterfactual"}'], // turns that are played again, in the context that they had
    ] as const) {
      const expected = await trained('digits', set);
      const { events, files } = await trained('digits', [...set, `rollout.isolate=${isolate}`]);
      expect(events).toEqual(expected.events);
      const weights = (of: typeof files) => Object.entries(of).filter(([file]) => file.endsWith('.safetensors'));
      expect(weights(files)).toEqual(weights(expected.files));
    }
  });

  it('ranks the episodes of a group there, with the same bits', async () => {
    const expected = await trained('ranked', []);
    const { events } = await trained('ranked', ['rollout.isolate=2']);
    expect(events).toEqual(expected.events);
    const failures = events.filter(({ type }) => type === 'episode.failed');
    expect(failures).toEqual([]);
  });

  it('tells of its calls as they are answered', async () => {
    const exporter = registeredExporter();
    const set = ['rollout.isolate=2', 'training.steps=1', 'evaluation.samples=1'];
    const { events } = await train(recipe('digits'), { run: await newRun(), threads: 1, set, track: ['otel'] });
    const steps = events.flatMap((event) => (event.type === 'step' ? Object.values(event.agents) : []));
    const chats = exporter.getFinishedSpans().filter(({ attributes }) => 'drmas.turn' in attributes);
    const trained = chats.filter(({ attributes }) => /training/.test(String(attributes['gen_ai.conversation.id'])));
    expect(trained).toHaveLength(steps.reduce((sum, { turns }) => sum + turns, 0));
    expect(trained.length).toBeGreaterThan(0);
  });

  it('does no harm but to its own episode where it loops or ends the process', async () => {
    const { log, events } = await trained('hostile', ['rollout.isolate=2']);
    const failures = events.flatMap((event) => (event.type === 'episode.failed' ? [event] : []));
    const messages = failures.map(({ reason, message }) => `${reason}: ${message}`).sort();
    expect([...new Set(messages)]).toEqual([
      'error: the team ended its thread',
      'timeout: its code did not return for 1500 ms',
    ]);
    expect(events.at(-1)).toMatchObject({ type: 'run.finished', reason: 'completed' });
    const again = await trained('hostile', ['rollout.isolate=1']);
    expect(again.events).toEqual(events);
    expect(await filesOf(log)).toEqual(again.files);
  });

  it('ends with the run, which goes on later', async () => {
    const run = await newRun();
    const controller = new AbortController();
    const sinks = [{ write: ({ type }: { type: string }) => type === 'step' && controller.abort(new Error('enough')) }];
    const set = ['rollout.isolate=2'];
    const options = { run, threads: 1, set, sinks, signal: controller.signal };
    await expect(train(recipe('digits'), options)).rejects.toThrow('enough');
    const { events } = await resume(run, undefined, { threads: 1 });
    expect(events.at(-1)).toMatchObject({ reason: 'completed' });
  });

  it('needs a file that threads can load', async () => {
    const run = await newRun();
    await expect(train(tinyDefinition(), { run, set: ['rollout.isolate=true'] })).rejects.toThrow(
      /rollout\.isolate.*defined by a program/,
    );
  });
});

describe('a loaded team in a thread of its own', () => {
  let run: string;
  beforeAll(async () => {
    run = await newRun();
    const set = ['rollout.isolate=1', 'training.steps=1', 'evaluation.samples=1'];
    await train(recipe('digits'), { run, threads: 1, set });
  });

  /** A function that plays a task with this answer and says how it ended; the threads that the team has started. */
  async function loaded() {
    const team = await loadTeam(run, { threads: 1 });
    onTestFinished(() => team.dispose());
    const threads: Worker[] = [];
    const add = (thread: Worker) => void threads.push(thread);
    process.on('worker', add);
    onTestFinished(() => void process.off('worker', add));
    const play = (answer: string, signal?: AbortSignal) =>
      team.play({ question: '19+7', answer }, signal && { signal }).then(
        () => 'played',
        (error: Error) => error.message,
      );
    /** Plays in the team's first thread, and gives the play up once its deed has begun. */
    const giveUp = async (answer: string) => {
      const controller = new AbortController();
      const played = play(answer, controller.signal);
      const [thread] = (await once(process, 'worker')) as [Worker];
      await once(thread.stdout, 'data');
      controller.abort(new Error('given up'));
      return played;
    };
    return { play, giveUp, threads };
  }

  it('plays on where another play is given up', async () => {
    const { play, giveUp, threads } = await loaded();
    const plays = [giveUp('waits for its end'), play('takes two seconds')];
    expect(await Promise.all(plays)).toEqual(['given up', 'played']);
    expect(await play('')).toBe('played');
    expect(threads).toHaveLength(1);
  });

  it.each(['never returns', 'never waits'])('ends the thread of a play that was given up and %s', async (deed) => {
    const { play, giveUp, threads } = await loaded();
    const given = giveUp(deed);
    if (deed === 'never returns') expect(await play('takes two seconds')).toBe('played');
    expect(await given).toBe('given up');
    const [thread] = threads as [Worker];
    if (thread.threadId !== -1) await once(thread, 'exit');
    expect(await play('')).toBe('played');
    expect(threads).toHaveLength(2);
  });

  it('plays in a fresh thread where an earlier episode has ended a free one', async () => {
    const { play, threads } = await loaded();
    const lost = 'the episode failed (error): the team ended its thread';
    // Both are played again, one at a time. The thread of the second one ends while it is free.
    const before = [play('ends its thread'), play('ends its thread later')];
    expect(await Promise.all(before)).toEqual([lost, 'played']);
    const free = threads.at(-1) as Worker;
    if (free.threadId !== -1) await once(free, 'exit');
    expect(await Promise.all([play('takes two seconds'), play('ends its thread')])).toEqual(['played', lost]);
  });
});
