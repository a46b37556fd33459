import { getEventListeners, once } from 'node:events';
import { createServer, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { EndpointError, TrainingError } from '@drmas/engine/errors';
import type { Episode } from '@drmas/engine/nouns';
import { packageVersion } from '@drmas/engine/platform';
import { describe, expect, it, vi } from 'vitest';
import { processorSeconds } from '../../../test/support/time-and-chance.js';
import { oneCallTeam as team } from '../../../test/support/tiny-run.js';
import { scriptedContext } from '../../runs/testing/play-scripted.js';
import { type Script, scriptedSampler } from '../../runs/testing/scripted-sampler.js';
import type { PlayRequest } from '../../teams/rollout/remote-speakers.js';
import type { Replay, RolloutContext } from '../../teams/rollout/rollout-context.js';
import { AnsweredCalls } from './handed-in.js';
import { QueueKey } from './queue-key.js';
import { EpisodePlayer } from './queue-worker.js';
import { RolloutServer, type RolloutServerOptions } from './rollout-server.js';
import { packed, type Registered, unpacked } from './wire.js';

const key = new QueueKey('a key of thirty-two characters...', 'DRMAS_QUEUE_KEY');
const door = key.door('run');
const worker = { codeHash: 'code', version: packageVersion(), name: 'host', nonce: 'once' };
const request: PlayRequest = { task: { id: 'a', data: { n: Number.NaN } }, sample: 2, phase: 'training', step: 7 };
const played = (reward: number) =>
  ({ task: request.task, sample: 2, turns: [], score: { team: reward, agents: {}, parts: {} } }) as never;
const sampleRequest = { prompt: [1, 2], stopTokens: [], key: [1, 2], temperature: 1, topP: 1, topK: 0, maxTokens: 4 };

/** A server, and a worker that asks it. */
function opened(
  script: Script = () => [9, 8],
  more: Partial<RolloutContext> = {},
  options: Pick<RolloutServerOptions, 'gateway' | 'onIgnored' | 'onFault'> = {},
) {
  const sampler = scriptedSampler(script);
  const context = {
    ...{
      agents: {},
      seed: 1,
      maxTurns: 4,
      timeoutMs: 1000,
      adaptAgents: () => Promise.reject(new Error('no adapters')),
    },
    policies: { solver: sampler.policy('solver', 32) },
    ...more,
  } as unknown as RolloutContext;
  const code = { source: 'recipe.ts', codeHash: 'code' };
  const server = new RolloutServer({ context, code, recipe: 'digest', leaseSeconds: 3, key, run: 'run', ...options });
  const ask = async (path: string, body: unknown, secret: string, signal?: AbortSignal) => {
    const bytes = body instanceof Uint8Array ? Uint8Array.from(body) : packed(body);
    const response = await server.app.request(`/${path}`, {
      method: 'POST',
      headers: { authorization: `Bearer ${secret}` },
      body: bytes,
      signal: signal ?? null,
    });
    const answer = response.ok ? unpacked(new Uint8Array(await response.arrayBuffer())) : await response.json();
    return { status: response.status, answer };
  };
  const register = async () => ((await ask('register', worker, door)).answer as Registered).secret;
  return { server, ask, register, sampler };
}

describe('the rollout server', () => {
  it('has a guard that lets workers pass, and refuses pages and bodies that are too long', () => {
    const { server } = opened();
    const refusal = (headers: Record<string, string>) =>
      server.guard(new Request('http://127.0.0.1:1/register', { method: 'POST', body: '{}', headers }))?.status;
    const known = { authorization: `Bearer ${door}` };
    expect(refusal(known)).toBeUndefined();
    expect(refusal({ ...known, origin: 'http://evil.example' })).toBe(403);
    expect(refusal({ ...known, 'sec-fetch-site': 'cross-site' })).toBe(403);
    expect(refusal({ ...known, 'content-length': '256000001' })).toBe(413);
    const page = { 'content-type': 'text/plain' };
    expect(refusal({ ...page, origin: 'http://evil.example' })).toBe(403);
  });

  it('lets in workers of its code and version, each with a secret of its own, and tells them what they need', async () => {
    const { ask, register } = opened();
    expect((await ask('register', worker, 'window')).status).toBe(401);
    expect(await ask('register', { ...worker, codeHash: 'other' }, door)).toMatchObject({
      status: 409,
      answer: { code: 'code', message: /code of the recipe differs from the run's/ },
    });
    expect(await ask('register', { ...worker, version: '0.0.0' }, door)).toMatchObject({
      status: 409,
      answer: { code: 'version' },
    });
    const { answer } = await ask('register', worker, door);
    expect(answer).toMatchObject({
      recipe: 'digest',
      leaseSeconds: 3,
      settings: { policies: { solver: { context: 32 } } },
    });
    expect((answer as Registered).proof).toBe(key.proof('run', 'once'));
    expect(await register()).not.toBe((answer as Registered).secret);
    // The secret for registration allows no other request.
    expect((await ask('take', { job: 'e0' }, door)).status).toBe(401);
  });

  it('hands an episode to whoever takes it, bit for bit, and keeps the first that comes back', async () => {
    const { server, ask, register } = opened();
    const [one, other] = [await register(), await register()];
    const offered = server.offer('e0', request, undefined);
    expect((await ask('take', { job: 'e0' }, one)).answer).toEqual(request);
    expect((await ask('take', { job: 'e0' }, other)).answer).toEqual(request); // the first worker seemed dead
    expect(server.open).toEqual(['e0']);
    expect((await ask('over', { job: 'e0', episode: played(1) }, one)).answer).toBe(true);
    expect((await ask('over', { job: 'e0', episode: played(0) }, other)).answer).toBe(true);
    expect((await offered).score.team).toBe(1);
    expect(server.open).toEqual([]);
    for (const path of ['take', 'call'])
      expect(await ask(path, { job: 'e0', policy: 'solver', request: sampleRequest }, other)).toMatchObject({
        status: 410,
        answer: { code: 'over' },
      });
  });

  it('hands over the turns that an episode is played again from, bit for bit', async () => {
    const { server, ask, register } = opened();
    const before = { agent: 'solver', turn: 0, id: '0f', logprobs: [-1 / 3, -0], value: undefined, valid: false };
    const replay = { number: 5, fixed: [before] } as unknown as Replay;
    const secret = await register();
    const offered = server.offer('e0', { ...request, replay }, undefined);
    const { answer } = await ask('take', { job: 'e0' }, secret);
    expect(answer).toStrictEqual({ ...request, replay });
    await ask('over', { job: 'e0', episode: played(1) }, secret);
    await offered;
  });

  it('has policies speak for an episode that is waited for', async () => {
    const { server, ask, register, sampler } = opened();
    const secret = await register();
    const offered = server.offer('e0', request, undefined);
    const speak = (policy: string, words: object = sampleRequest) =>
      ask('call', { job: 'e0', policy, request: words }, secret);
    expect((await speak('solver')).answer).toMatchObject({ tokens: [9, 8], logprobs: [-1, -1], policyVersion: 3 });
    expect(sampler.calls[0]?.request.prompt).toEqual([1, 2]);
    expect(await speak('nobody')).toMatchObject({ status: 422, answer: { message: /asks 'nobody'/ } });
    expect(await speak('solver', { ...sampleRequest, prompt: undefined, messages: [], seed: 1 })).toMatchObject({
      status: 422,
    });
    await ask('over', { job: 'e0', episode: played(1) }, secret);
    await offered;
  });

  it('ends what a policy says to an episode that nobody waits for any more', async () => {
    const heard: unknown[] = [];
    let begin = () => {};
    const begun = new Promise<void>((resolve) => {
      begin = resolve;
    });
    const { server, ask, register } = opened(
      ({ signal }) =>
        new Promise((_, reject) => {
          begin();
          signal?.addEventListener('abort', () => {
            heard.push('over');
            reject(new Error('nobody listens'));
          });
        }),
    );
    const secret = await register();
    const controller = new AbortController();
    const offered = server.offer('e0', request, controller.signal);
    const speaking = ask('call', { job: 'e0', policy: 'solver', request: sampleRequest }, secret);
    await begun;
    controller.abort(new Error('Ctrl-C'));
    await expect(offered).rejects.toThrow('Ctrl-C');
    expect((await speaking).status).toBe(422);
    expect(heard).toEqual(['over']);
  });

  it('adds one listener to the signal of a run, whose cost grows with the square of their number', async () => {
    const { server } = opened();
    const controller = new AbortController();
    const offered = ['e0', 'e1', 'e2'].map((job) => server.offer(job, request, controller.signal));
    expect(getEventListeners(controller.signal, 'abort')).toHaveLength(1);
    controller.abort(new Error('Ctrl-C'));
    for (const each of offered) await expect(each).rejects.toThrow('Ctrl-C');
    expect(server.open).toEqual([]);
  });

  it('fails an episode whose code broke, all when the run is over, and one whose endpoint is gone', async () => {
    const gone = { complete: () => Promise.reject(new EndpointError('nobody answers')) };
    const { server, ask, register } = opened(undefined, { policies: { judge: { endpoint: gone } } });
    const secret = await register();
    const broken = server.offer('e0', request, undefined);
    const judged = server.offer('e1', request, undefined);
    const left = server.offer('e2', request, undefined);
    for (const episode of [broken, judged, left]) episode.catch(() => {});
    await ask('broken', { job: 'e0', message: 'a bug in the team' }, secret);
    await expect(broken).rejects.toThrow(new TrainingError('a bug in the team'));
    await ask(
      'call',
      { job: 'e1', policy: 'judge', request: { ...sampleRequest, prompt: undefined, messages: [], seed: 1 } },
      secret,
    );
    await expect(judged).rejects.toThrow('nobody answers');
    server.end(new Error('the run is over'));
    await expect(left).rejects.toThrow('the run is over');
    const late = await ask('broken', { job: 'e0', message: 'again' }, secret);
    expect(late).toEqual({ status: 200, answer: true });
  });

  it('refuses a worker whose episode it did not sample by name, and has another one play the episode', async () => {
    const faults: string[] = [];
    const { server, ask, register } = opened(undefined, {}, { onFault: (message) => void faults.push(message) });
    const [liar, honest] = [await register(), await register()];
    const offered = server.offer('e0', request, undefined);
    const forged = { ...(played(1) as object), turns: [{ agent: '__proto__' }] };
    const named = /worker 1 \(host\) handed in an episode of a\/2 in step 7 that this run did not sample: turns\.0/;
    expect(await ask('over', { job: 'e0', episode: forged }, liar)).toMatchObject({
      status: 403,
      answer: { message: named },
    });
    expect(faults).toEqual([expect.stringMatching(named)]);
    for (const path of ['take', 'over'])
      expect((await ask(path, { job: 'e0', episode: played(1) }, liar)).status).toBe(401);
    expect(server.open).toEqual(['e0']);
    await ask('over', { job: 'e0', episode: played(0.5) }, honest);
    expect((await offered).score.team).toBe(0.5);
  });

  it('counts an episode as failed after three workers whose episode it did not sample', async () => {
    const { server, ask, register } = opened();
    const offered = server.offer('e0', request, undefined);
    for (const episode of [null, {}, played(1e308)])
      expect((await ask('over', { job: 'e0', episode }, await register())).status).toBe(403);
    const { failure, score, turns } = await offered;
    expect(failure).toMatchObject({ reason: 'backend', message: /worker 3 \(host\).*the reward is 1e\+308/ });
    expect([score.team, turns]).toEqual([0, []]);
  });

  it('counts an episode as failed after eight workers that took it and did not hand it in', async () => {
    const faults: string[] = [];
    const { server, ask, register } = opened(undefined, {}, { onFault: (message) => void faults.push(message) });
    const offered = server.offer('e0', request, undefined);
    for (let died = 0; died < 8; died++) {
      const secret = await register();
      for (let times = 0; times < 2; times++)
        expect(await ask('take', { job: 'e0' }, secret)).toEqual({ status: 200, answer: request });
    }
    expect(faults).toEqual([]);
    expect((await ask('take', { job: 'e0' }, await register())).status).toBe(410);
    const message = expect.stringMatching(/a\/2 in step 7 failed: 8 workers took it, and none of them handed it in/);
    expect((await offered).failure).toEqual({ reason: 'backend', message });
    expect(faults).toEqual([message]);
  });

  it('refuses a tokenizer that a worker cannot make, before any worker plays', () => {
    const handle = scriptedSampler(() => []).policy('solver', 32);
    const tokenizer = { ...handle.tokenizer, toJSON: () => ({ type: 'mine' }) };
    expect(() => opened(undefined, { policies: { solver: { ...handle, tokenizer } } })).toThrow(
      /^rollout: the tokenizer of 'solver' cannot be made in a thread or a worker: /,
    );
  });

  it('refuses requests of another form, and policies that are only names of objects', async () => {
    const { server, ask, register } = opened();
    const secret = await register();
    const offered = server.offer('e0', request, undefined);
    const wrong: [path: string, body: unknown][] = [
      ...['take', 'call', 'over', 'broken', 'warning'].flatMap((path): [string, unknown][] => [
        [path, null],
        [path, { job: 1 }],
      ]),
      ['call', { job: 'e0', policy: 'solver', request: { ...sampleRequest, prompt: [] } }],
      ['call', { job: 'e0', policy: 'solver', request: { ...sampleRequest, prompt: [-1] } }],
      ['call', { job: 'e0', policy: 'solver', request: { ...sampleRequest, key: [1] } }],
      ['call', { job: 'e0', policy: 'solver', request: { ...sampleRequest, maxTokens: 0 } }],
      ['warning', { about: 'else', message: 'x' }],
      ['broken', { job: 'e0', message: 7 }],
    ];
    for (const [path, body] of wrong)
      expect(await ask(path, body, secret)).toMatchObject({ status: 400, answer: { code: 'malformed' } });
    for (const policy of ['__proto__', 'constructor'])
      expect((await ask('call', { job: 'e0', policy, request: sampleRequest }, secret)).status).toBe(422);
    await ask('over', { job: 'e0', episode: played(1) }, secret);
    await offered;
  });

  it('refuses bodies that are no values, and passes warnings on', async () => {
    const warnings: string[] = [];
    const { ask, register } = opened(undefined, { warn: (message) => void warnings.push(message) });
    const secret = await register();
    expect(await ask('take', new Uint8Array([1, 2, 3]), secret)).toMatchObject({
      status: 400,
      answer: { code: 'malformed' },
    });
    await ask('warning', { about: 'team', message: 'a stray error' }, secret);
    expect(warnings).toEqual(['a stray error']);
  });

  it('refuses at once what is far larger than its bytes, or has a million faults', async () => {
    const { ask, register } = opened();
    const secret = await register();
    const holes: number[] = [];
    holes.length = 1e6; // two seconds and half a gigabyte of faults; 2 ** 32 - 1 take as few bytes
    const long = Array.from({ length: 1e4 }, () => 1);
    const longer = Array.from({ length: 1e4 }, () => long);
    const call = (more: object) => ['call', { job: 'e0', policy: 'solver', request: { ...sampleRequest, ...more } }];
    const text = { prompt: undefined, key: undefined, seed: 1 };
    const requests = [
      call({ prompt: holes }),
      call({ prompt: Array.from({ length: 1e6 }, () => -1) }),
      call({ ...text, messages: Array.from({ length: 1e6 }, () => 1) }),
      call({ ...text, messages: [{ role: 'user', content: 'x', more: Array.from({ length: 1e4 }, () => longer) }] }),
      ['take', { job: 'e0', more: holes }],
    ] as [string, unknown][];
    const seconds = await processorSeconds(async () => {
      for (const [path, body] of requests)
        expect(await ask(path, body, secret)).toMatchObject({ status: 400, answer: { code: 'malformed' } });
    });
    expect(seconds).toBeLessThan(5);
    const loop: { job: string; self?: object } = { job: 'e0' };
    loop.self = loop;
    expect((await ask('take', loop, secret)).status).toBe(410);
  });

  it('gives workers the settings of their gateways, and says once what all of these ignore', async () => {
    const ignored: string[] = [];
    const gateway = { host: '127.0.0.1', port: 0, maxCalls: 3 };
    const { ask, register } = opened(undefined, {}, { gateway, onIgnored: (message) => void ignored.push(message) });
    expect((await ask('register', worker, door)).answer).toMatchObject({ gateway });
    for (const secret of [await register(), await register()])
      for (const message of ['judge: requests set seed', 'solver: requests set seed'])
        await ask('warning', { about: 'gateway', message }, secret);
    expect(ignored).toEqual(['judge: requests set seed', 'solver: requests set seed']);
  });
});

describe('what a worker may take of the memory of a run', () => {
  it('is a bounded number of calls of an episode, also of repeated ones', async () => {
    const calls = new AnsweredCalls();
    for (let i = 0; i < 20_000; i++) calls.begin();
    expect(() => calls.begin()).toThrow('an episode has at most 20000 calls');
    const { server, ask, register } = opened();
    void server.offer('e0', request, undefined).catch(() => {});
    const full = vi.spyOn(AnsweredCalls.prototype, 'begin').mockImplementation(() => calls.begin());
    const call = { job: 'e0', policy: 'solver', request: sampleRequest };
    expect(await ask('call', call, await register())).toMatchObject({ status: 422, answer: { code: 'refused' } });
    full.mockRestore();
    server.end(new Error('over'));
  });

  it('is a bounded number of warnings, each of a bounded length', async () => {
    const warn = vi.fn();
    const { ask, register } = opened(undefined, { warn });
    const secret = await register();
    for (let i = 0; i < 1050; i += 50)
      await Promise.all(
        Array.from({ length: 50 }, () =>
          ask('warning', { about: 'team', message: i === 0 ? 'x'.repeat(1e6) : 'y' }, secret),
        ),
      );
    expect(warn).toHaveBeenCalledTimes(1000);
    expect(warn.mock.calls[0]?.[0]).toHaveLength(10_000);
  });
});

describe('a worker whose run is another program', () => {
  const answers: Readonly<
    Record<string, [respond: (response: ServerResponse) => void, message: RegExp, ends: string]>
  > = {
    'never ends its answer': [(response) => endless(response.writeHead(200)), /longer than/, 'RefusedError'],
    'never ends its refusal': [(response) => endless(response.writeHead(409)), /longer than/, 'RefusedError'],
    'redirects it': [
      (response) => void response.writeHead(308, { location: 'https://run.example/' }).end(),
      /redirects to https:\/\/run\.example\/: rollout\.publicUrl must be its own address/,
      'RefusedError',
    ],
    'says nothing': [() => {}, /does not answer/, 'UnansweredError'],
    'says nothing after the head': [
      (response) => void response.writeHead(200).flushHeaders(),
      /does not answer/,
      'UnansweredError',
    ],
  };
  function endless(response: ServerResponse): void {
    const piece = Buffer.alloc(1 << 16);
    const go = () => {
      while (!response.destroyed && response.write(piece)) sent += piece.length;
    };
    response.on('drain', go);
    go();
  }
  let sent = 0;

  it.each(Object.entries(answers))('gives up one that %s, and reads little', async (_, [respond, message, ends]) => {
    sent = 0;
    const program = createServer((incoming, response) => {
      incoming.resume().on('end', () => respond(response));
    }).listen(0, '127.0.0.1');
    await once(program, 'listening');
    const url = `http://127.0.0.1:${(program.address() as AddressInfo).port}`;
    const given = { settings: { policies: {} }, secret: 'x' } as unknown as Registered;
    // A busy machine may take a second to begin an answer. Only of one that says nothing is the time waited for.
    const patience = ends === 'UnansweredError' ? { ms: 20, triesMs: 100 } : { ms: 60_000, triesMs: 60_000 };
    const player = new EpisodePlayer(url, given, team, undefined, { bytes: 1e6, ...patience });
    const outcome = await player.play('e0', new AbortController().signal).catch((error: unknown) => error);
    expect(outcome).toMatchObject({ name: ends, message: expect.stringMatching(message) });
    expect(sent).toBeLessThan(20e6); // the buffers of the connection, too
    program.closeAllConnections();
    program.close();
  });
});

describe('a worker whose network fails for longer than it repeats its requests', () => {
  it.each(['take', 'call', 'over'])('plays the episode again if the answer to %s is lost', async (failing) => {
    const { agents, policies } = scriptedContext(
      team,
      scriptedSampler(() => '2'),
    );
    const { server, ask } = opened(undefined, { agents, policies, timeoutMs: 1e9 });
    const given = (await ask('register', worker, door)).answer as Registered;
    const lost: string[] = [];
    let fails = true;
    vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] });
    vi.stubGlobal('fetch', async (url: string, init: RequestInit) => {
      const path = url.replace('http://run', '');
      if (!fails || path !== `/${failing}`) return server.app.request(path, init);
      lost.push(path);
      throw new TypeError('fetch failed', { cause: new Error('connect EHOSTUNREACH') });
    });
    try {
      const offered = server.offer('e0', request, undefined);
      const player = new EpisodePlayer('http://run', given, team, undefined);
      const first = player.play('e0', new AbortController().signal);
      const outcome = first.catch((error: unknown) => error);
      while (lost.length === 0) await new Promise((resolve) => setImmediate(resolve));
      await vi.advanceTimersByTimeAsync(120_000);
      expect(await outcome).toMatchObject({
        name: 'UnansweredError',
        message: 'the run at http://run does not answer: fetch failed (connect EHOSTUNREACH)',
      });
      expect(server.open).toEqual(['e0']);
      fails = false;
      await player.play('e0', new AbortController().signal);
      expect(await offered).toMatchObject({ turns: [{ text: '2' }], score: { team: 1 } });
      expect(lost).toHaveLength(61);
    } finally {
      vi.unstubAllGlobals();
      vi.useRealTimers();
    }
  });
});

it('hands over episodes with every number as it is', () => {
  const odd = { values: [-0, Number.NaN, 1 / 3, Number.NEGATIVE_INFINITY], nothing: undefined } as unknown as Episode;
  expect(unpacked(packed(odd))).toStrictEqual(odd);
});
