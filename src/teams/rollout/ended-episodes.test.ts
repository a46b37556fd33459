import { EpisodeOverError } from '@drmas/engine/errors';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { z } from 'zod';
import { eventually } from '../../../test/support/time-and-chance.js';
import { scriptedContext } from '../../runs/testing/play-scripted.js';
import { type Script, scriptedSampler } from '../../runs/testing/scripted-sampler.js';
import { agent } from '../team/agent.js';
import { defineTeam, type PlayContext } from '../team/team.js';
import { playEpisode } from './play-episode.js';

const agents = { counter: agent(), talker: agent() };
type Play = (context: PlayContext<unknown, typeof agents>) => Promise<unknown>;

// The listeners of the test runner would take errors for the test's that belong to an episode.
const ofRunner = (listener: { readonly name: string }) => !listener.name.startsWith('stray');
const runner = {
  unhandledRejection: process.listeners('unhandledRejection').filter(ofRunner),
  uncaughtException: process.listeners('uncaughtException').filter(ofRunner),
};
beforeAll(() => {
  for (const listener of runner.unhandledRejection) process.off('unhandledRejection', listener);
  for (const listener of runner.uncaughtException) process.off('uncaughtException', listener);
});
afterAll(() => {
  for (const listener of runner.unhandledRejection) process.on('unhandledRejection', listener);
  for (const listener of runner.uncaughtException) process.on('uncaughtException', listener);
});

const rounds = async (count: number) => {
  for (let i = 0; i < count; i++) await new Promise(setImmediate);
};

async function played(
  play: Play,
  script: Script = () => '1',
  reward: () => number | Promise<number> = () => 1,
  cleanupMs = 10_000,
) {
  const team = defineTeam({ task: z.unknown(), agents, play, reward });
  const warnings: string[] = [];
  const context = {
    ...scriptedContext(team, scriptedSampler(script)),
    cleanupMs,
    warn: (message: string) => warnings.push(message),
  };
  const request = { team, task: { id: 'seven', data: {} }, sample: 2, phase: 'training', step: 5 } as const;
  const episode = await playEpisode(context, request);
  return { episode, warnings };
}

/** A script in which one agent's server fails. */
const failsAt =
  (agent: string): Script =>
  ({ policy }) => {
    if (policy === agent) throw new Error('gone');
    return '1';
  };

/** Work that ends when the signal fires, as `fetch` does. */
const cancellable = (signal: AbortSignal) =>
  new Promise((_, reject) => signal.addEventListener('abort', () => reject(signal.reason)));

describe('an episode that is over', () => {
  it('rejects its calls, begun before or after, with an error that frameworks take for an aborted request', async () => {
    let [pending, late]: (Promise<unknown> | undefined)[] = [];
    let ask: () => Promise<unknown> = async () => {};
    const { episode } = await played(
      async ({ agents: { counter, talker } }) => {
        const first = counter('1');
        pending = talker('2');
        ask = () => counter('3');
        return (await first).text;
      },
      async ({ policy, signal }) =>
        policy === 'talker' ? ((await cancellable(signal as AbortSignal)) as string) : '1',
    );
    expect(episode.outcome).toBe('1');
    late = ask();
    for (const call of [pending, late]) {
      const error = await call?.catch((error: unknown) => error);
      expect(error).toBeInstanceOf(EpisodeOverError);
      expect(error).toMatchObject({
        name: 'AbortError',
        message: 'the episode is over: play and reward have returned',
      });
    }
    expect(episode.turns).toHaveLength(1);
  });

  it('releases its resources when it fails: finally and disposal have run before the episode is returned', async () => {
    const given: string[] = [];
    const close = async (what: string) => {
      await rounds(3); // closing takes a while
      given.push(what);
    };
    const { episode, warnings } = await played(async ({ agents: { counter, talker }, log }) => {
      const [one, two] = [counter('1'), talker('2')];
      try {
        await one;
        await two;
      } finally {
        await close('browser');
        log('closed', true);
        await counter('3').catch((error: Error) => given.push(error.name));
      }
    }, failsAt('talker'));
    expect(episode.failure?.reason).toBe('backend');
    expect(given).toEqual(['browser', 'AbortError']);
    expect(episode.log).toEqual([expect.objectContaining({ name: 'closed', value: true })]);
    expect(warnings).toEqual([]);
  });

  it('is waited for up to a limit if it never releases its resources', async () => {
    const play: Play = async ({ agents: { talker } }) => {
      try {
        await talker('1');
      } finally {
        await new Promise(() => {});
      }
    };
    const { episode, warnings } = await played(play, failsAt('talker'), undefined, 20);
    expect(episode.failure?.reason).toBe('backend');
    expect(warnings).toEqual([
      "the team 'team' on seven/2 has not returned 20 ms after its episode was over; nothing waits for it any more",
    ]);
  });

  it('ends a loop that would continue to call', async () => {
    let rejected: unknown;
    const { episode } = await played(async ({ agents: { counter } }) => {
      const loop = async () => {
        for (;;) await counter('again');
      };
      loop().catch((error: unknown) => {
        rejected = error;
      });
      await counter('enough');
    });
    expect(episode.failure).toBeUndefined();
    await rounds(2);
    expect(rejected).toBeInstanceOf(EpisodeOverError);
  });

  it('ignores only the rejections that its own end causes; other errors are warnings', async () => {
    let isOver = false;
    const { episode, warnings } = await played(async ({ agents: { counter }, signal }) => {
      void cancellable(signal);
      await counter('1');
      void counter('never mind').then(() => counter('never mind that either'));
      const fail = () => {
        if (!isOver) return void setImmediate(fail);
        throw new Error('too late');
      };
      fail();
    });
    isOver = true;
    expect(episode.failure).toBeUndefined();
    await eventually(() => warnings.length > 0);
    await rounds(2);
    expect(warnings).toEqual(["the team 'team' on seven/2: an error after the episode was over: too late"]);
  });
});

describe('an error that nothing awaits', () => {
  it.each<[string, Play]>([
    [
      'a rejection',
      async ({ agents: { counter } }) => {
        void (async () => {
          await counter('1');
          throw new Error('no awaits');
        })();
        await new Promise(() => {});
      },
    ],
    [
      'an error of a microtask',
      async () => {
        queueMicrotask(() => {
          throw new Error('no awaits');
        });
        await new Promise(() => {});
      },
    ],
    [
      'an error of the event loop',
      async () => {
        setImmediate(() => {
          throw new Error('no awaits');
        });
        await new Promise(() => {});
      },
    ],
  ])('is the failure of its episode, with its place: %s', async (_, play) => {
    const { episode } = await played(play, undefined, undefined, 20); // none of them ever returns
    expect(episode.failure).toMatchObject({
      reason: 'error',
      message: 'no code awaited the failed promise: no awaits',
    });
    expect(episode.failure?.stack).toMatch(/ended-episodes\.test\.ts:\d+:\d+/);
  });
});

describe('the failure of a team', () => {
  const unreadable = Proxy.revocable({}, {});
  unreadable.revoke();

  it.each<[string, () => unknown, string]>([
    ['nothing', () => undefined, 'undefined'],
    ['a symbol', () => Symbol('odd'), 'Symbol(odd)'],
    ['an object without a prototype', () => Object.create(null), 'the thrown value cannot be read'],
    ['a revoked proxy', () => unreadable.proxy, 'the thrown value cannot be read'],
    [
      'an error whose message throws',
      () => Object.defineProperty(new Error(), 'message', { get: () => JSON.parse('') }),
      'the thrown value cannot be read',
    ],
    ['a long text', () => 'x'.repeat(1e6), `${'x'.repeat(2000)}…`],
  ])('is recorded when it throws %s', async (_, thrown, message) => {
    const { episode } = await played(async () => {
      throw thrown();
    });
    expect(episode.failure).toMatchObject({ reason: 'error', message });
    const rejected = await played(
      async () => 1,
      () => '1',
      () => Promise.reject(thrown()),
    );
    expect(rejected.episode.failure).toMatchObject({ reason: 'reward', message });
  });

  it("names the place in the team's code, without frames of the engine or of Node", async () => {
    const { episode } = await played(async ({ agents: { counter } }) => {
      const { text } = await counter('1');
      const deep = (depth: number): string => (depth === 0 ? JSON.parse(`{${text}`) : deep(depth - 1));
      deep(2);
    });
    const frames = episode.failure?.stack?.split('\n') ?? [];
    expect(frames.length).toBeGreaterThan(2);
    expect(frames.some((line) => line.includes('node:') || line.includes('play-episode'))).toBe(false);
    expect(frames.some((line) => line.includes('ended-episodes.test.ts'))).toBe(true);
  });
});
