import { describe, expect, it } from 'vitest';
import { z } from 'zod';
import { scriptedContext } from '../../runs/testing/play-scripted.js';
import { scriptedSampler } from '../../runs/testing/scripted-sampler.js';
import { agent } from '../team/agent.js';
import { defineTeam, type PlayContext, type Reward } from '../team/team.js';
import { playEpisode } from './play-episode.js';

const agents = { solver: agent() };
type Data = { question: string; notes: { list: number[] } };
type Play = (context: PlayContext<Data, typeof agents>) => Promise<unknown>;

async function played(play: Play, reward: (data: Data) => unknown = () => 1) {
  const team = defineTeam({
    task: z.custom<Data>(),
    agents,
    play,
    reward: ({ task, episode }) => {
      const given = reward(task);
      return (typeof given === 'function' ? given(episode) : given) as Reward;
    },
  });
  const task = { id: 't', data: { question: 'q', notes: { list: [1] } } };
  const sampler = scriptedSampler(() => 'answer');
  const context = { ...scriptedContext(team, sampler), maxOutcomeBytes: 1000 };
  const episode = await playEpisode(context, { team, task, sample: 0, phase: 'training', step: 1 });
  return { episode, task, sampler };
}

describe('a task', () => {
  it.each<[string, Play]>([
    ['at its top', async ({ task }) => Object.assign(task, { question: 'other' })],
    ['inside', async ({ task }) => task.notes.list.push(2)],
  ])('cannot be changed by a team %s', async (_, play) => {
    const { episode, task } = await played(play);
    expect(episode.failure).toMatchObject({
      reason: 'error',
      message: expect.stringMatching(/read only|not extensible/),
    });
    expect(task.data).toEqual({ question: 'q', notes: { list: [1] } });
  });

  it('cannot be changed by a reward, and neither can the turns', async () => {
    const changed = await played(
      async () => 1,
      (data) => data.notes.list.push(2),
    );
    expect(changed.episode.failure).toMatchObject({ reason: 'reward' });
    const emptied = await played(
      async ({ agents: { solver } }) => (await solver('a')).text,
      () => (episode: { turns: unknown[] }) => episode.turns.pop(),
    );
    expect(emptied.episode.failure).toMatchObject({ reason: 'reward' });
    expect(emptied.episode.turns).toHaveLength(1);
  });

  it('is a copy, so that a team may change its own later', async () => {
    const history = [{ role: 'user' as const, content: 'first' }];
    const { episode } = await played(async ({ agents: { solver } }) => {
      const reply = solver(history);
      Object.assign(history[0] as object, { content: 'later' });
      await reply;
    });
    expect(episode.turns[0]?.messages).toEqual([{ role: 'user', content: 'first' }]);
  });
});

describe('an episode has bounds', () => {
  const circular: unknown[] = ['a'];
  circular.push(circular);
  const revoked = Proxy.revocable({}, {});
  revoked.revoke();

  it.each<[string, unknown]>([
    ['a text', 'x'.repeat(2000)],
    ['a list of numbers', new Array(3e6).fill(0)],
    ['names', Object.fromEntries(Array.from({ length: 200 }, (_, i) => [`name ${i}`, i]))],
    ['bytes', new Uint8Array(600)],
  ])('of its outcome: %s', async (_, outcome) => {
    const { episode } = await played(async () => outcome);
    expect(episode.failure?.message).toBe('the outcome is larger than training.maxOutcomeBytes, 1000');
    expect(episode.outcome).toBeUndefined();
  });

  it.each<[string, unknown]>([
    ['a text that just fits', 'x'.repeat(998)],
    ['a circular value', circular],
    ['an unreadable value', { inner: revoked.proxy }],
    ['nothing', undefined],
  ])('and lets pass %s', async (_, outcome) => {
    expect((await played(async () => outcome)).episode.failure).toBeUndefined();
  });

  it('of its prompts, before they are tokenised', async () => {
    const { episode, sampler } = await played(async ({ agents: { solver } }) => solver('1'.repeat(1e7)));
    const message = 'solver: a prompt of 10000000 characters exceeds the context of 4096';
    expect(episode.failure).toEqual({ reason: 'overlong', message, agent: 'solver' });
    expect(sampler.calls).toEqual([]);
  });

  it.each<[string, unknown, string]>([
    ['no reward of a turn', { team: 1, turns: [null] }, 'the reward of a turn is null, expected { turn, value }'],
    ['parts with an infinite sum', { a: 1e308, b: 1e308 }, "the part 'a' is 1e+308, expected at most 1e+30 in size"],
    ['parts with too large a sum', { a: 7e29, b: 7e29 }, 'the sum of the parts of the reward is 1.4e+30'],
    ['a number whose square is infinite', -1e160, 'the reward is -1e+160, expected at most 1e+30 in size'],
  ])('of its reward: %s', async (_, reward, message) => {
    const { episode } = await played(
      async () => 1,
      () => reward,
    );
    expect(episode.failure).toMatchObject({ reason: 'reward', message: expect.stringContaining(message) });
  });
});

describe('the log of a team', () => {
  it('is kept in order, as it was, and numbers are metrics', async () => {
    const hits = { passages: ['one'] };
    const { episode } = await played(async ({ log }) => {
      log('search', hits);
      hits.passages.push('two');
      log('hits', 1);
      log('hits', 4);
      log('useful', true);
      log('tool', () => 1);
      log('mark', Symbol('end'));
      log('note', { tool: () => 1 });
    });
    expect(episode.failure).toBeUndefined();
    expect(episode.log).toEqual([
      { name: 'search', value: { passages: ['one'] } },
      { name: 'hits', value: 1 },
      { name: 'hits', value: 4 },
      { name: 'useful', value: true },
      { name: 'tool', value: '() => 1' },
      { name: 'mark', value: 'Symbol(end)' },
      { name: 'note', value: '[object Object]' },
    ]);
    expect(episode.score.metrics).toEqual({ hits: 2.5, useful: 1 });
    expect((await played(async () => 1)).episode).not.toHaveProperty('log');
  });

  it('is kept of a failed episode too', async () => {
    const { episode } = await played(async ({ log }) => {
      log('before', 'all was well');
      throw new Error('then not');
    });
    expect(episode).toMatchObject({
      log: [{ name: 'before', value: 'all was well' }],
      failure: { message: 'then not' },
    });
  });

  it.each<[string, (log: (name: string, value: unknown) => void) => void, string]>([
    ['without a name', (log) => log('', 1), 'log: expected a name of 1 to 100 characters'],
    ['that is not a number', (log) => log('loss', Number.NaN), "log: 'loss' is NaN, expected a finite number"],
    [
      'of any size',
      (log) => log('page', 'x'.repeat(1000)),
      "log: 'page' is larger than training.maxOutcomeBytes, 1000",
    ],
    [
      'for ever',
      (log) => {
        for (;;) log('again', 1);
      },
      'log: expected at most 1000 values an episode',
    ],
  ])('is refused %s', async (_, act, message) => {
    const { episode } = await played(async ({ log }) => act(log));
    expect(episode.failure?.message).toContain(message);
  });
});
