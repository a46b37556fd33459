import { APICallError, generateText, Output, stepCountIs, streamText, tool } from 'ai';
import OpenAI, { BadRequestError } from 'openai';
import { describe, expect, it } from 'vitest';
import { z } from 'zod';
import { scriptedContext } from '../../runs/testing/play-scripted.js';
import { scriptedSampler } from '../../runs/testing/scripted-sampler.js';
import { playEpisode } from '../../teams/rollout/play-episode.js';
import { agent } from '../../teams/team/agent.js';
import { defineTeam, type PlayContext } from '../../teams/team/team.js';
import { trainable } from './trainable.js';

const agents = { solver: agent({ tools: 'plain', invalidPenalty: 0.5 }) };
type Context = PlayContext<object, typeof agents>;
const LONG = 'x'.repeat(100);
const CONTEXT = 64;

/** Plays an episode with an agent whose context is 64 bytes. */
async function played(play: (context: Context) => Promise<unknown>) {
  const team = defineTeam({ task: z.object({}), agents, play, reward: () => 1 });
  const sampler = scriptedSampler(({ prompt }) => (prompt.includes('look') ? '@look()' : 'fine'));
  const context = scriptedContext(team, sampler, { policies: { solver: sampler.policy('solver', CONTEXT) } });
  const task = { id: 'one', data: {} };
  const episode = await playEpisode(context, { team, task, sample: 0, phase: 'training', step: 0 });
  return { ...episode, sampler };
}

const ask = ({ agents }: Context, prompt: string) => generateText({ model: agents.solver.model, prompt });
const askClient = ({ openai }: Context, content: string) =>
  new OpenAI(openai).chat.completions.create({ model: 'solver', messages: [{ role: 'user', content }] });

/** The error of a promise that is expected to reject. */
const errorOf = (promise: Promise<unknown>): Promise<unknown> =>
  promise.then(
    () => undefined,
    (error: unknown) => error,
  );

describe('messages that do not fit the context', () => {
  it('reject the call as a provider of AI SDK refuses it, and the episode continues', async () => {
    const { outcome, turns, failure, refused } = await played(async (context) => {
      const errors = [await errorOf(ask(context, LONG))];
      errors.push(await errorOf(generateText({ model: trainable('solver'), prompt: LONG })));
      for (const error of errors) {
        if (!APICallError.isInstance(error)) throw error;
        expect(error.statusCode).toBe(400);
        expect(error.isRetryable).toBe(false);
        expect(error.data).toMatchObject({ error: { code: 'context_length_exceeded' } });
        expect(error.message).toMatch(/^solver's context is 64 tokens, and the messages are 1\d\d tokens$/);
      }
      return (await ask(context, 'short')).text;
    });
    expect(failure).toBeUndefined();
    expect(outcome).toBe('fine');
    expect(turns.map(({ turn, call }) => [turn, call])).toEqual([[0, 0]]);
    expect(refused).toEqual({ solver: 2 });
  });

  it('reject the call as the API of OpenAI refuses it, which is made once', async () => {
    const { outcome, failure, refused } = await played(async (context) => {
      const error = await errorOf(askClient(context, LONG));
      if (!(error instanceof BadRequestError)) throw error;
      return [error.status, error.code, (await askClient(context, 'short')).choices[0]?.message.content];
    });
    expect(failure).toBeUndefined();
    expect(outcome).toEqual([400, 'context_length_exceeded', 'fine']);
    expect(refused).toEqual({ solver: 1 });
  });

  const look = tool({ inputSchema: z.object({}), execute: async () => LONG });
  const streamed = ({ agents }: Context, prompt: string) =>
    streamText({ model: agents.solver.model, prompt, onError: () => {} });
  it.each<[string, (context: Context, prompt: string) => PromiseLike<unknown>]>([
    ['AI SDK', ask],
    ["OpenAI's client", askClient],
    [
      'a client that keeps the text alone',
      (context, prompt) =>
        ask(context, prompt).catch(({ message }: Error) => {
          throw new Error(`Command failed: ${message}`);
        }),
    ],
    ['a stream of AI SDK, which loses the error', (context, prompt) => streamed(context, prompt).text],
    [
      'the second call of a stream of AI SDK',
      ({ agents }) =>
        streamText({
          ...{ model: agents.solver.model, prompt: 'x', tools: { look }, stopWhen: stepCountIs(3), onError: () => {} },
          output: Output.json(),
        }).output,
    ],
  ])(
    'fail the episode as too long if the team does not catch the error, and no turn is at fault: %s',
    async (_, call) => {
      for (const before of [false, true]) {
        const { failure, turns } = await played(async (context) => {
          if (before) await ask(context, 'short');
          return call(context, LONG);
        });
        expect(failure).toMatchObject({ reason: 'overlong', message: expect.stringContaining('context is 64 tokens') });
        expect(failure?.agent).toBeUndefined();
        expect(turns.map(({ valid }) => valid)).toEqual(turns.map(() => true));
      }
    },
  );

  it('are no refusal if the team has caught it and goes on', async () => {
    const { failure, turns } = await played(async (context) => {
      await ask(context, LONG).catch(() => {});
      return JSON.parse((await ask(context, 'short')).text);
    });
    expect(failure).toMatchObject({ reason: 'invalid-output', agent: 'solver' });
    expect(turns).toMatchObject([{ valid: false, penalty: 0.5 }]);
  });

  it('fail the episode if the team called the agent itself, even if it catches the error', async () => {
    const { failure, refused } = await played(async ({ agents: { solver } }) => errorOf(solver(LONG)));
    expect(failure).toMatchObject({ reason: 'overlong', message: expect.stringContaining('exceed the context of 64') });
    expect(refused).toBeUndefined();
  });

  it('end a loop that only tries again, by the most calls of an episode', async () => {
    const { failure, refused } = await played(async (context) => {
      while (!context.signal.aborted) await errorOf(ask(context, LONG));
    });
    expect(failure).toMatchObject({ reason: 'too-many-turns' });
    expect(refused).toEqual({ solver: 16 });
  });
});

describe('a part that no text model reads', () => {
  it.each([
    'AAAA',
    new URL('http://127.0.0.1:9/none.png'), // nobody downloads it
  ])('fails the episode as a mistake of the program, also in a stream, which loses the error: %s', async (data) => {
    const content = [{ type: 'file' as const, data, mediaType: 'image/png' }];
    const { failure, turns } = await played(async (context) => {
      await ask(context, 'short');
      const messages = [{ role: 'user' as const, content }];
      return streamText({ model: context.agents.solver.model, messages, onError: () => {} }).text;
    });
    expect(failure).toMatchObject({ reason: 'error', message: expect.stringContaining("a part of type 'file'") });
    expect(turns).toMatchObject([{ valid: true }]);
  });
});

describe('an answer', () => {
  it('is limited to the room left in the context', async () => {
    const { sampler, failure } = await played((context) => ask(context, 'x'.repeat(50)));
    const { prompt, maxTokens } = sampler.calls[0]?.request ?? { prompt: [], maxTokens: 0 };
    expect(failure).toBeUndefined();
    expect(maxTokens).toBeLessThan(16);
    expect(prompt.length + maxTokens).toBe(CONTEXT);
  });
});
