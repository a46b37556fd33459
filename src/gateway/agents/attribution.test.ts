import { AsyncResource } from 'node:async_hooks';
import { EventEmitter } from 'node:events';
import { customProvider, generateText, stepCountIs, streamText, ToolLoopAgent, tool, wrapLanguageModel } from 'ai';
import { afterEach, describe, expect, it, vi } from 'vitest';
import { z } from 'zod';
import { repeatedly, takesTime } from '../../../test/support/time-and-chance.js';
import { playScripted } from '../../runs/testing/play-scripted.js';
import type { Script } from '../../runs/testing/scripted-sampler.js';
import { agent } from '../../teams/team/agent.js';
import type { LanguageModel } from '../../teams/team/language-model.js';
import { defineTeam } from '../../teams/team/team.js';
import { boundFetch, trainable } from './index.js';

const solver = trainable('solver');
const ask = async (prompt: string) => (await generateText({ model: solver, prompt })).text;

/** Plays several episodes at once; in each, `solve` calls the solver. */
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

afterEach(() => void vi.unstubAllGlobals());

describe('an agent in play', () => {
  it('makes a connection when it is read, keeps it, and names it among its properties', async () => {
    const team = defineTeam({
      task: z.object({}),
      agents: { solver: agent(), checker: agent() },
      async play({ agents: { solver, checker } }) {
        expect(solver.model).toBe(solver.model);
        expect(solver.model).not.toBe(checker.model);
        expect([solver.openai.model, checker.openai.model]).toEqual(['solver', 'checker']);
        expect({ ...checker }).toEqual({ model: checker.model, openai: checker.openai });
        return (await generateText({ model: checker.model, prompt: 'well?' })).text;
      },
      reward: () => 0,
    });
    const { turns } = await playScripted(team, {}, () => 'well');
    expect(turns.map((turn) => turn.agent)).toEqual(['checker']);
  });
});

describe('a call finds its episode', () => {
  it('after timers, in callbacks and across functions of other modules', async () => {
    expect(await played(ask)).toEqual(right);
    expect(
      await played(async (prompt, episode) => {
        await takesTime(3 - episode);
        return [prompt].map(ask)[0] ?? '';
      }),
    ).toEqual(right);
  });

  it('in a stream that is read later, by code of none', async () => {
    const waiting: (() => void)[] = [];
    const reader = repeatedly(1, () => waiting.shift()?.());
    const readOutside = async (prompt: string, episode: number) => {
      const { textStream } = streamText({ model: solver, prompt });
      await takesTime(3 - episode);
      return new Promise<string>((resolve, reject) => {
        const read = async () => {
          let text = '';
          for await (const piece of textStream) text += piece;
          return text;
        };
        waiting.push(() => read().then(resolve, reject));
      });
    };
    expect(await played(readOutside)).toEqual(right);
    reader();
  });

  it('through a model that was wrapped, or is found by a name', async () => {
    const wrapped = wrapLanguageModel({ model: solver, middleware: { specificationVersion: 'v3' } });
    expect(await played(async (prompt) => (await generateText({ model: wrapped, prompt })).text)).toEqual(right);
    vi.stubGlobal('AI_SDK_DEFAULT_PROVIDER', customProvider({ languageModels: { 'openai/gpt-5-mini': solver } }));
    const named = async (prompt: string) => (await generateText({ model: 'openai/gpt-5-mini', prompt })).text;
    expect(await played(named)).toEqual(right);
  });

  it('in an agent that is a tool of another', async () => {
    const helper = new ToolLoopAgent({ model: trainable('helper') });
    const inputSchema = z.object({ what: z.string() });
    const ask = tool({ inputSchema, execute: async ({ what }) => (await helper.generate({ prompt: what })).text });
    const boss = new ToolLoopAgent({ model: trainable('boss'), tools: { ask }, stopWhen: stepCountIs(3) });
    const play = async (episode: number) => {
      const team = defineTeam({
        task: z.object({}),
        agents: { boss: agent({ tools: 'plain' }), helper: agent() },
        play: async () => {
          await takesTime(3 - episode);
          return (await boss.generate({ prompt: `episode ${episode}` })).text;
        },
        reward: () => 0,
      });
      const { outcome, turns } = await playScripted(team, {}, ({ policy, prompt }) => {
        const [name = ''] = prompt.match(/episode \d/) ?? [];
        if (policy === 'helper') return `to ${name}`;
        return prompt.includes(`to ${name}`) ? `it is to ${name}` : `@ask(${name})`;
      });
      expect(turns.map(({ agent }) => agent)).toEqual(['boss', 'helper', 'boss']);
      return outcome;
    };
    expect(await Promise.all([0, 1, 2].map(play))).toEqual(right.map((answer) => `it is ${answer}`));
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
    const worker = repeatedly(1, () => jobs.shift()?.());
    const queued = (bind: (job: () => Promise<string>) => () => Promise<string>) => (prompt: string) =>
      new Promise<string>((resolve, reject) => {
        const job = bind(() => ask(prompt));
        jobs.push(() => job().then(resolve, reject));
      });
    try {
      expect(await played(queued((job) => job))).toEqual([lost, lost, lost]);
      expect(await played(queued((job) => AsyncResource.bind(job)))).toEqual(right);
    } finally {
      worker();
    }
  });

  it('in a loader that batches', async () => {
    const jobs: (() => void)[] = [];
    const flush = repeatedly(5, () => {
      for (const answer of jobs.splice(0)) answer();
    });
    const load = (prompt: string) =>
      new Promise<string>((resolve, reject) => void jobs.push(() => ask(prompt).then(resolve, reject)));
    expect(await played(load)).toEqual([lost, lost, lost]);
    flush();
  });

  it('in the handler of an emitter that emits outside', async () => {
    const bus = new EventEmitter();
    const ticking = repeatedly(1, () => bus.emit('tick'));
    const solve = (prompt: string) =>
      new Promise<string>((resolve, reject) => bus.once('tick', () => ask(prompt).then(resolve, reject)));
    expect(await played(solve)).toEqual([lost, lost, lost]);
    ticking();
  });

  it('in a generator that is made inside and read outside, but not in one read in its own scope', async () => {
    async function* answers(prompt: string) {
      yield await ask(prompt);
    }
    const inside = async (prompt: string) => String((await answers(prompt).next()).value);
    expect(await played(inside)).toEqual(right);
    const waiting: (() => void)[] = [];
    const reader = repeatedly(1, () => waiting.shift()?.());
    const handedOver = (prompt: string) =>
      new Promise<string>((resolve, reject) => {
        const generator = answers(prompt);
        waiting.push(() => generator.next().then(({ value }) => resolve(String(value)), reject));
      });
    expect(await played(handedOver)).toEqual([lost, lost, lost]);
    reader();
  });

  it('in a promise that was made before, by any code that waits for it', async () => {
    let begin = () => {};
    const shared = new Promise<void>((resolve) => {
      begin = resolve;
    }).then(() => ask('for nobody'));
    shared.catch(() => {});
    const solve = () => {
      begin();
      return shared;
    };
    expect(await played(solve)).toEqual([lost, lost, lost]);
  });

  it('in a fetch, whose answer has a status that clients do not retry', async () => {
    const outside: (() => void)[] = [];
    const worker = repeatedly(1, () => outside.shift()?.());
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
    worker();
  });
});

describe('a promise that an episode makes and others share', () => {
  it('is a call of the episode that made it, and a turn of that one alone', async () => {
    let memo: Promise<string> | undefined;
    const turns: number[] = [];
    const play = (episode: number) => {
      const team = defineTeam({
        task: z.object({}),
        agents: { solver: agent() },
        play: () => {
          memo ??= ask(`episode ${episode}`);
          return memo;
        },
        reward: ({ episode: { turns: played } }) => {
          turns[episode] = played.length;
          return 0;
        },
      });
      return playScripted(team, {}, ({ prompt }) => `to ${/episode \d/.exec(prompt)}`);
    };
    const episodes = await Promise.all([0, 1, 2].map(play));
    expect(episodes.map(({ outcome }) => outcome)).toEqual(Array(3).fill('to episode 0'));
    expect(turns).toEqual([1, 0, 0]);
  });
});

describe('a call that is refused', () => {
  it('is made once, for any number of retries of a framework', async () => {
    const seen: string[] = [];
    const counted = (model: LanguageModel): LanguageModel => ({
      specificationVersion: 'v3',
      provider: 'drmas',
      supportedUrls: {},
      modelId: model.modelId,
      doGenerate: (call) => {
        seen.push(model.modelId);
        return model.doGenerate(call);
      },
      doStream: (call) => model.doStream(call),
    });
    const unknown = () => generateText({ model: counted(trainable('judge')), prompt: 'x' });
    let over: LanguageModel | undefined;
    await played(async () => {
      await expect(unknown()).rejects.toThrow(/no agent 'judge'/);
      over = counted(trainable('solver'));
      return '';
    }, 1);
    await expect(generateText({ model: over as LanguageModel, prompt: 'x' })).rejects.toThrow(/outside of an episode/);
    expect(seen).toEqual(['judge', 'solver']);
  });
});

describe('a stream', () => {
  const streams = (act: (answer: AsyncIterator<string>, stop: AbortController) => Promise<void>, script: Script) => {
    const team = defineTeam({
      task: z.object({}),
      agents: { solver: agent() },
      play: async ({ agents }) => {
        const stop = new AbortController();
        const { textStream } = streamText({
          model: agents.solver.model,
          prompt: 'x',
          abortSignal: stop.signal,
          onError: () => {},
        });
        await act(textStream[Symbol.asyncIterator](), stop);
      },
      reward: () => 0,
    });
    return playScripted(team, {}, script);
  };

  it('that a program leaves after its first piece is a turn: it trains on the text that the program read', async () => {
    const { turns } = await streams(
      async (answer) => {
        expect(await answer.next()).toMatchObject({ value: 'fine' });
        await answer.return?.();
      },
      () => 'fine',
    );
    expect(turns.map(({ text }) => text)).toEqual(['fine']);
  });

  it('that is cancelled before its first piece is no turn', async () => {
    const { turns } = await streams(
      async (answer, stop) => {
        const first = answer.next().catch(() => {});
        setImmediate(() => stop.abort());
        await first;
      },
      ({ signal }) => new Promise((_, reject) => signal?.addEventListener('abort', () => reject(signal.reason))),
    );
    expect(turns).toEqual([]);
  });
});

describe('boundFetch', () => {
  it('rejects with the reason of its signal, before a call and during one, and no turn is kept', async () => {
    const before = AbortSignal.abort(new Error('never'));
    const stop = new AbortController();
    const body = JSON.stringify({ model: 'solver', messages: [{ role: 'user', content: 'x' }] });
    const team = defineTeam({
      task: z.object({}),
      agents: { solver: agent() },
      async play() {
        for (const signal of [before, stop.signal])
          await expect(
            boundFetch('http://drmas/v1/chat/completions', { method: 'POST', body, signal }),
          ).rejects.toThrow(/never|enough/);
      },
      reward: () => 0,
    });
    const { turns } = await playScripted(team, {}, ({ signal }) => {
      stop.abort(new Error('enough'));
      return new Promise((_, reject) => signal?.addEventListener('abort', () => reject(signal.reason)));
    });
    expect(turns).toEqual([]);
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

describe('tokens in process', () => {
  it('are counted without a turn, by the rules of calls', async () => {
    const count = async (model: string) => {
      const body = JSON.stringify({ model, messages: [{ role: 'user', content: 'Hi' }] });
      const response = await boundFetch('http://drmas/v1/messages/count_tokens', { method: 'POST', body });
      return [response.status, await response.json()];
    };
    const team = defineTeam({
      task: z.object({}),
      agents: { solver: agent() },
      play: async ({ agents }) => {
        const known = await count('some/solver');
        await agents.solver('Hi');
        return [known, await count('judge')];
      },
      reward: () => 0,
    });
    const { turns, outcome } = await playScripted(team, {}, () => 'fine');
    expect(turns).toHaveLength(1);
    expect(outcome).toEqual([
      [200, { input_tokens: turns[0]?.prompt.length }],
      [404, { type: 'error', error: expect.objectContaining({ message: expect.stringContaining("'judge'") }) }],
    ]);
    expect(await count('solver')).toEqual([400, expect.anything()]);
  });
});

describe('tokens of thinking in process', () => {
  it.each([
    ['a thought', '<think>Hm.</think>\n5', 18],
    ['a thought that is not ended', '<think>Hm.', 11],
    ['no thought', '5', undefined],
  ])('are counted in each interface: %s', async (_, text, count) => {
    const post = async (route: string, messages: object) => {
      const body = JSON.stringify({ model: 'solver', ...messages });
      const response = await boundFetch(`http://drmas/v1/${route}`, { method: 'POST', body });
      return ((await response.json()) as { usage: unknown }).usage;
    };
    const team = defineTeam({
      task: z.object({}),
      agents: { solver: agent() },
      play: async () => [
        await post('chat/completions', { messages: [{ role: 'user', content: 'Hi' }] }),
        await post('responses', { input: 'Hi' }),
        (await generateText({ model: solver, prompt: 'Hi' })).usage,
      ],
      reward: () => 0,
    });
    const { outcome } = await playScripted(team, {}, () => text);
    const written = text.length + 1; // with the stop token
    expect(outcome).toMatchObject([
      { completion_tokens: written, completion_tokens_details: { reasoning_tokens: count ?? 0 } },
      { output_tokens: written, output_tokens_details: { reasoning_tokens: count ?? 0 } },
      { outputTokens: written, outputTokenDetails: { reasoningTokens: count } },
    ]);
  });
});

describe('outside of episodes', () => {
  it('a fetch is refused', async () => {
    const response = await boundFetch('http://drmas/v1/models');
    expect([response.status, await response.text()]).toEqual([400, expect.stringContaining('no episode is played')]);
  });
});
