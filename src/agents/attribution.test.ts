import { AsyncResource } from 'node:async_hooks';
import { EventEmitter } from 'node:events';
import { generateText } from 'ai';
import { describe, expect, it } from 'vitest';
import { z } from 'zod';
import { agent } from '../teams/agent.js';
import { defineTeam } from '../teams/team.js';
import { playScripted } from '../testing/play-scripted.js';
import { boundFetch, trainable } from './index.js';

const solver = trainable('solver');
const ask = async (prompt: string) => (await generateText({ model: solver, prompt })).text;

/** Plays several episodes at once, in which `solve` calls the solver in some way. */
async function played(solve: (prompt: string, episode: number) => Promise<string>, episodes = 3) {
  const play = (episode: number) => {
    const team = defineTeam({
      task: z.object({}),
      agents: { solver: agent() },
      play: () => solve(`episode ${episode}`, episode),
      reward: () => 0,
    });
    const answer = ({ prompt }: { prompt: string }) => `to ${/episode \d/.exec(prompt)}`;
    return playScripted(team, {}, answer).then(
      ({ outcome }) => outcome,
      (error: Error) => error.message,
    );
  };
  return Promise.all(Array.from({ length: episodes }, (_, episode) => play(episode)));
}

const right = ['to episode 0', 'to episode 1', 'to episode 2'];
const later = (ms: number) => new Promise((resolve) => setTimeout(resolve, ms));

describe('a call finds its episode', () => {
  it('after timers, in callbacks and across functions of other modules', async () => {
    expect(await played(ask)).toEqual(right);
    expect(
      await played(async (prompt, episode) => {
        await later(3 - episode);
        return [prompt].map(ask)[0] ?? '';
      }),
    ).toEqual(right);
  });

  it('through a fetch that was bound to nothing', async () => {
    const request = async (prompt: string) => {
      const body = JSON.stringify({ model: 'some/solver', messages: [{ role: 'user', content: prompt }] });
      const response = await boundFetch('http://drmas/v1/chat/completions', { method: 'POST', body });
      const { choices } = (await response.json()) as { choices: { message: { content: string } }[] };
      return choices[0]?.message.content ?? '';
    };
    expect(await played(request)).toEqual(right);
  });
});

describe('a call that lost its episode is an error that names the usual causes', () => {
  const lost = expect.stringMatching(/^unattributed call: .*p-queue.*EventEmitter.*generator.*promise/);

  it('in a loop of workers that was started outside, unless the job is bound', async () => {
    const jobs: (() => void)[] = [];
    const worker = setInterval(() => jobs.shift()?.(), 1);
    const queued = (bind: (job: () => Promise<string>) => () => Promise<string>) => (prompt: string) =>
      new Promise<string>((resolve, reject) => {
        const job = bind(() => ask(prompt));
        jobs.push(() => job().then(resolve, reject));
      });
    try {
      expect(await played(queued((job) => job))).toEqual([lost, lost, lost]);
      expect(await played(queued((job) => AsyncResource.bind(job)))).toEqual(right);
    } finally {
      clearInterval(worker);
    }
  });

  it('in the handler of an emitter that emits outside', async () => {
    const bus = new EventEmitter();
    const ticking = setInterval(() => bus.emit('tick'), 1);
    const solve = (prompt: string) =>
      new Promise<string>((resolve, reject) => bus.once('tick', () => ask(prompt).then(resolve, reject)));
    expect(await played(solve)).toEqual([lost, lost, lost]);
    clearInterval(ticking);
  });

  it('in a fetch, where the answer has a status that no client sends again', async () => {
    const outside: (() => void)[] = [];
    const worker = setInterval(() => outside.shift()?.(), 1);
    const solve = () =>
      new Promise<string>((resolve, reject) => {
        const request = { method: 'POST', body: '{"model":"solver","messages":[]}' };
        outside.push(() => {
          boundFetch('http://drmas/v1/chat/completions', request)
            .then(async ({ status, headers }) => `${status} ${headers.get('x-should-retry')}`)
            .then(resolve, reject);
        });
      });
    expect(await played(solve)).toEqual(Array(3).fill('400 false'));
    clearInterval(worker);
  });
});

describe('an agent that the team does not have', () => {
  it('is an error that lists those it has', async () => {
    const [model] = await played(async (prompt) => (await generateText({ model: trainable('judge'), prompt })).text, 1);
    expect(model).toBe("there is no agent 'judge'; the team has solver");
    const request = {
      method: 'POST',
      body: JSON.stringify({ model: 'gpt-5', messages: [{ role: 'user', content: 'x' }] }),
    };
    const [status] = await played(async () => {
      const response = await boundFetch('http://drmas/v1/chat/completions', request);
      const { error } = (await response.json()) as { error: { message: string; code: string } };
      return `${response.status} ${error.code} ${error.message}`;
    }, 1);
    expect(status).toBe("404 model_not_found there is no agent 'gpt-5'; the team has solver");
  });
});

describe('where nothing is played', () => {
  it('a fetch is refused', async () => {
    const response = await boundFetch('http://drmas/v1/models');
    expect([response.status, await response.text()]).toEqual([400, expect.stringContaining('no episode is played')]);
  });
});
