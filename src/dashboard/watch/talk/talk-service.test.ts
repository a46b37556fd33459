import { cp, mkdir, readdir, readFile, rm, stat, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { nodeHost } from '@drmas/engine/platform';
import type { Hono } from 'hono';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { recordRun } from '../../../../test/support/recorded-run.js';
import { eventually } from '../../../../test/support/time-and-chance.js';
import { temporaryRoot, tinyRecipe, trainTiny, useCache } from '../../../../test/support/tiny-run.js';
import type { TalkFacts, TalkMessage, TalkQuestion } from '../../../runs/analysis/talk-protocol.js';
import { openAgentModels } from '../../../serve/models/open-agent-models.js';
import { RunCatalog } from '../run-catalog.js';
import { watchApp } from '../watch-server.js';
import { TalkService } from './talk-service.js';

describe('talk routes', () => {
  const root = temporaryRoot();
  const runs = join(root, 'runs');
  const talk = new TalkService();
  const ending = new AbortController();
  let app: Hono;
  beforeAll(async () => {
    await mkdir(runs);
    const run = await trainTiny(root, tinyRecipe());
    await cp(run.path, join(runs, 'first'), { recursive: true });
    await (await recordRun(join(runs, 'bare'))).close();
    const catalog = new RunCatalog(runs);
    await catalog.refresh();
    app = watchApp({ catalog, talk, page: root, signal: ending.signal });
  });
  afterAll(async () => {
    ending.abort();
    await talk.close();
  });

  const at = 'http://localhost:7373/api/talk';
  const facts = async (run: string) => (await (await app.request(`${at}?run=${run}`)).json()) as TalkFacts;

  function post(changes: object = {}, headers: Readonly<Record<string, string>> = {}) {
    const question: Partial<TalkQuestion> = {
      run: 'first',
      agent: 'solver',
      messages: [{ role: 'user', content: '1+2' }],
    };
    return app.request(at, {
      method: 'POST',
      headers: { 'content-type': 'application/json', ...headers },
      body: JSON.stringify({ ...question, ...changes }),
    });
  }

  async function ask(changes: object = {}): Promise<TalkMessage[]> {
    const response = await post(changes);
    const text = await response.text();
    if (response.status !== 200) throw new Error(`${response.status}: ${text}`);
    return text
      .trim()
      .split('\n')
      .map((line) => JSON.parse(line) as TalkMessage);
  }

  /** Waits until no question is being answered. */
  const idle = () =>
    eventually(async () =>
      expect(await (await post({ messages: [{ role: 'user', content: '1' }] })).text()).toMatch(/"end"/),
    );

  const answersOf = (messages: readonly TalkMessage[]) =>
    Object.fromEntries(messages.flatMap((message) => (message.type === 'end' ? [[message.side, message.text]] : [])));

  async function filesOf(directory: string) {
    const names = await readdir(directory, { recursive: true });
    return Promise.all(names.sort().map(async (name) => [name, (await stat(join(directory, name))).mtimeMs] as const));
  }

  describe('talking to an agent', () => {
    it('says who is there and loads nobody for it', async () => {
      expect(await facts('first')).toMatchObject({
        agents: [
          { name: 'solver', system: '<solver>', maxTokens: 6 },
          { name: 'verifier', system: '<verifier>', maxTokens: 2 },
        ],
        checkpoints: [2, 4],
        problem: null,
        loaded: null,
      });
      expect((await facts('bare')).problem).toMatch(/did not record its agents/);
      expect((await app.request(`${at}?run=nobody`)).status).toBe(404);
    });

    it('gives what the trained agent says and what the warm start says, as each does alone, and writes nothing', {
      tags: 'verify',
    }, async () => {
      const before = await filesOf(join(runs, 'first'));
      const messages = await ask({ temperature: 0 });
      expect(messages.map(({ type }) => type).filter((type) => type !== 'text')).toEqual([
        'loading',
        'open',
        'end',
        'end',
      ]);
      const [, open] = messages;
      expect(open).toMatchObject({
        loaded: { run: 'first', agent: 'solver', step: 4 },
        untrained: { what: 'warm start', there: true },
      });
      const { agentModels, untrained, dispose } = await openAgentModels(
        { from: join(runs, 'first'), agent: 'solver', untrained: true },
        nodeHost({ threads: 1 }),
      );
      const greedy = async (agentModel: ReturnType<typeof agentModels.get>) => {
        const { tokenizer } = agentModel?.model ?? {};
        const prompt = tokenizer?.chat([
          { role: 'system', content: '<solver>' },
          { role: 'user', content: '1+2' },
        ]);
        const stopTokens = tokenizer?.stopTokens ?? [];
        const sampling = { temperature: 0, topP: 1, topK: 0, maxTokens: 6 };
        const given = await agentModel?.model.generate({ ...sampling, prompt: prompt ?? [], stopTokens, key: [1, 2] });
        return tokenizer?.decode((given?.tokens ?? []).filter((token) => !stopTokens.includes(token)));
      };
      expect(answersOf(messages)).toEqual({
        trained: await greedy(agentModels.get('solver')),
        untrained: await greedy(untrained.get('solver')?.agentModel),
      });
      await dispose();
      expect(await filesOf(join(runs, 'first'))).toEqual(before);
      expect((await facts('first')).loaded).toMatchObject({ agent: 'solver', step: 4 });
    });

    it('keeps to an older step, to the limit of tokens and to the seed', async () => {
      const question = { agent: 'verifier', step: 2, maxTokens: 1, temperature: 3, seed: 5 };
      const [first, again, other] = [await ask(question), await ask(question), await ask({ ...question, seed: 6 })];
      expect(first[1]).toMatchObject({ loaded: { agent: 'verifier', step: 2 } });
      expect(answersOf(again)).toEqual(answersOf(first));
      const ends = [...first, ...other].flatMap((message) => (message.type === 'end' ? [message.tokens] : []));
      expect(ends).toEqual([1, 1, 1, 1]);
    });

    it('compares with the oldest checkpoint, by its step, where the warm start is kept no more', {
      tags: 'verify',
    }, async () => {
      const { DRMAS_CACHE: cache = '' } = process.env;
      useCache(join(root, 'empty'));
      await app.request(at, { method: 'DELETE' });
      expect((await facts('first')).loaded).toBeNull();
      const untrained = async (step: number) =>
        (await ask({ step })).flatMap((one) => ('untrained' in one ? one.untrained : []));
      expect(await untrained(4)).toEqual([{ what: 'step 2', there: true }]);
      expect(await untrained(2)).toEqual([{ what: expect.stringMatching(/are not kept/), there: false }]);
      process.env.DRMAS_CACHE = cache;
    });

    it('answers one question at a time', async () => {
      const slow = await post();
      const second = await post();
      expect([slow.status, second.status]).toEqual([200, 409]);
      // The first answer is not read: it ends nevertheless.
      await eventually(async () => expect((await post()).status).toBe(200));
      await eventually(async () => expect((await post({ maxTokens: 1 })).status).toBe(200));
      await slow.text();
    });

    it('is free for the next question, whenever a page is closed during an answer', async () => {
      await idle();
      let pieces = 0;
      for await (const _ of (await post()).body ?? []) pieces++;
      expect(pieces).toBeGreaterThan(3);
      for (let read = 0; read <= pieces; read++) {
        const reader = (await post()).body?.getReader();
        for (let piece = 0; piece < read; piece++) await reader?.read();
        await reader?.cancel();
        const next = await eventually(async () => {
          const response = await post({ maxTokens: 1 });
          return response.status !== 409 && response;
        });
        expect(next.status).toBe(200);
        await next.text();
      }
    });

    it('says what is wrong', async () => {
      await idle();
      await expect(ask({ run: '../../etc' })).rejects.toThrow(/^404/);
      await expect(ask({ temperature: -1 })).rejects.toThrow(/^400.*temperature/);
      await expect(ask({ messages: [] })).rejects.toThrow(/^400/);
      await expect(ask({ messages: [{ role: 'user', content: 'x'.repeat(300_000) }] })).rejects.toThrow(/^413/);
      const failed = async (changes: object) => (await ask(changes)).at(-1);
      expect(await failed({ agent: 'nobody' })).toMatchObject({
        type: 'failed',
        message: expect.stringMatching(/no trained agent 'nobody'/),
      });
      expect(await failed({ step: 9 })).toMatchObject({
        type: 'failed',
        message: expect.stringMatching(/no checkpoint '9'/),
      });
      const long = [{ role: 'user', content: '1+2'.repeat(100) }];
      expect(await failed({ messages: long })).toMatchObject({
        type: 'failed',
        message: expect.stringMatching(/leave no room in a context of 64/),
      });
      const file = join(runs, 'first', 'checkpoints', 'step-000004', 'solver', 'model.safetensors');
      const whole = await readFile(file);
      await app.request(at, { method: 'DELETE' });
      await writeFile(
        file,
        whole.map((byte, i) => (i === whole.length - 1 ? byte ^ 1 : byte)),
      );
      expect(await failed({})).toMatchObject({ type: 'failed', message: expect.stringMatching(/SHA-256 differs/) });
      await writeFile(file, whole);
      await rm(join(root, 'empty'), { recursive: true, force: true });
    });
  });

  it('frees an agent that nobody asks any more', { tags: 'verify' }, async () => {
    const patient = new TalkService({ idleMinutes: 0.2 / 60 });
    const path = join(runs, 'first');
    const question: TalkQuestion = {
      run: 'first',
      agent: 'solver',
      step: null,
      temperature: null,
      maxTokens: null,
      seed: 0,
      messages: [{ role: 'user', content: '1' }],
    };
    for await (const _ of patient.ask(path, question, new AbortController().signal));
    expect((await patient.facts(path)).loaded).not.toBeNull();
    await eventually(async () => expect((await patient.facts(path)).loaded).toBeNull());
    await patient.close();
  });
});
