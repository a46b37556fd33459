/** The contract of every wire dialect with its clients, tested through the app that serves all of them. */

import { DialectError, EpisodeOverError } from '@drmas/engine/errors';
import type { Message } from '@drmas/engine/nouns';
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import type { ModelAnswer, ModelDelta, ModelRequest } from '../../src/gateway/dialects/dialect.js';
import { modelApp, type ServedCall } from '../../src/gateway/dialects/model-app.js';
import { takesTime } from '../support/time-and-chance.js';

/** A reply as a client of a dialect reads it. */
interface ClientView {
  readonly text: string;
  readonly reasoning: string;
  readonly calls: readonly { readonly id: string; readonly name: string; readonly arguments: string }[];
  readonly finish: string;
  readonly tokens: readonly [prompt: number, response: number];
}

export interface DialectCase {
  readonly route: string;
  /** The conversation of the suite, and everything that clients add to it, in this dialect. */
  readonly conversation: object;
  /** A body of one user message, without anything that may be left out. */
  readonly plain: object;
  /** Bodies that are refused, with a word of the reason. */
  readonly refused: readonly (readonly [what: string, body: unknown, reason: RegExp])[];
  /** The answers of a dialect for why it ended. */
  readonly finish: { readonly stop: string; readonly length: string; readonly tool_calls: string };
  /** Reads an answer as a client does: a body, or a stream's events. */
  readBody(body: unknown): ClientView;
  readStream(events: readonly { event?: string; data: unknown }[]): ClientView;
  /** The message of a refusal. Throws if the body does not have the dialect's form. */
  readError(body: unknown): string;
}

/** The messages that every dialect must read. */
const spoken: readonly Message[] = [
  { role: 'system', content: 'Be brief.' },
  { role: 'user', content: 'What is in a and b?' },
  {
    role: 'assistant',
    content: 'I look.',
    reasoning: 'Hm.',
    toolCalls: [
      { id: 'call_1_0', name: 'look', arguments: '{"at":"a"}' },
      { id: 'call_1_1', name: 'look', arguments: '{"at":"b"}' },
    ],
  },
  { role: 'tool', content: 'seven', toolCallId: 'call_1_0' },
  { role: 'tool', content: 'eight', toolCallId: 'call_1_1' },
  { role: 'user', content: 'And together?' },
];

const look = {
  name: 'look',
  description: 'Looks.',
  parameters: { type: 'object', properties: { at: { type: 'string' } }, required: ['at'] },
};

const answer: ModelAnswer = {
  id: 'c0ffee',
  model: 'solver',
  content: 'Fifteen.',
  toolCalls: [],
  finishReason: 'stop',
  usage: { promptTokens: 11, responseTokens: 7 },
};
const calling: ModelAnswer = {
  ...answer,
  content: '',
  reasoning: 'Hm.',
  toolCalls: [
    { id: 'call_2_0', name: 'look', arguments: '{"at":"c"}' },
    { id: 'call_2_1', name: 'look', arguments: '{"at":"ü"}' },
  ],
  finishReason: 'tool_calls',
};

type Complete = (request: ModelRequest, call: ServedCall<string>) => Promise<ModelAnswer> | AsyncIterable<ModelDelta>;

/** Runs the suite on one dialect. */
export function dialectContract(name: string, dialect: DialectCase): void {
  const serving = (complete: Complete) => {
    const app = modelApp<string>({
      authorise({ secrets, path }) {
        if (!secrets.includes('right')) throw new DialectError(401, 'unknown_secret', 'nobody knows this secret');
        return path?.agent ?? 'root';
      },
      models: () => ['solver', 'judge'],
      complete,
      countTokens: () => 5,
    });
    return (body: unknown, init: RequestInit = {}, base = '') =>
      app.request(`${base}${dialect.route}`, {
        method: 'POST',
        headers: { authorization: 'Bearer right' },
        body: typeof body === 'string' || body instanceof Uint8Array ? body : JSON.stringify(body),
        ...init,
      });
  };
  const whole = (each: ModelAnswer) => serving(async () => each);

  describe(`the dialect ${name}`, () => {
    it('reads a conversation with tools, whatever clients add', async () => {
      const requests: ModelRequest[] = [];
      const send = serving(async (request) => {
        requests.push(request);
        return answer;
      });
      expect((await send(dialect.conversation)).status).toBe(200);
      const [request] = requests;
      expect(request).toMatchObject({
        model: 'solver',
        tools: [look],
        toolChoice: { name: 'look' },
        maxTokens: 64_000,
      });
      expect(request?.messages).toEqual(spoken);
      expect(request?.ignored).toEqual(expect.arrayContaining(['temperature', 'top_p']));
      expect(request?.sampling).toMatchObject({ temperature: 0.5, topP: 0.9 });
      expect(request?.stream).toBe(false);
    });

    it('reads the least that a request may be', async () => {
      const requests: ModelRequest[] = [];
      const send = serving(async (request) => {
        requests.push(request);
        return answer;
      });
      expect((await send(dialect.plain)).status).toBe(200);
      expect(requests[0]).toMatchObject({ messages: [{ role: 'user', content: 'Hi' }], ignored: [], sampling: {} });
      expect(requests[0]).not.toHaveProperty('tools');
      expect(requests[0]).not.toHaveProperty('responseSchema');
    });

    it.each([
      ['text', answer],
      ['calls of tools', calling],
      ['text and calls', { ...calling, content: 'Wait.' }],
      ['what was cut short', { ...answer, finishReason: 'length' as const }],
      ['nothing', { ...answer, content: '' }],
    ])('says the same whole and streamed: %s', async (_, given) => {
      const expected: ClientView = {
        text: given.content,
        reasoning: given.reasoning ?? '',
        calls: given.toolCalls,
        finish: dialect.finish[given.finishReason],
        tokens: [11, 7],
      };
      const response = await whole(given)(dialect.plain);
      expect(response.headers.get('content-type')).toMatch(/^application\/json/);
      expect(dialect.readBody(await response.json())).toEqual(expected);
      const stream = await whole(given)({ ...dialect.plain, stream: true, stream_options: { include_usage: true } });
      expect(stream.headers.get('content-type')).toMatch(/^text\/event-stream/);
      expect(dialect.readStream(eventsOf(await stream.text()))).toEqual(expected);
    });

    it('streams pieces as they come, and the rest at the end', async () => {
      let release = () => {};
      const held = new Promise<void>((resolve) => {
        release = resolve;
      });
      const send = serving(async function* () {
        yield { type: 'begin', id: 'c0ffee', promptTokens: 11 };
        yield { type: 'reasoning', text: 'Hm.' };
        yield { type: 'text', text: 'Fif' };
        await held;
        yield { type: 'answer', answer: { ...answer, reasoning: 'Hm.' } };
      });
      const response = await send({ ...dialect.plain, stream: true, stream_options: { include_usage: true } });
      const reader = (response.body as ReadableStream<Uint8Array>).getReader();
      let text = '';
      while (!text.includes('"Fif"')) text += new TextDecoder().decode((await reader.read()).value);
      expect(text).not.toContain('teen.');
      release();
      for (let part = await reader.read(); !part.done; part = await reader.read())
        text += new TextDecoder().decode(part.value);
      expect(text).toContain('"teen."');
      expect(dialect.readStream(eventsOf(text))).toMatchObject({ text: 'Fifteen.', reasoning: 'Hm.', tokens: [11, 7] });
    });

    it('is the same below the path of an episode, which says whose call it is', async () => {
      const callers: string[] = [];
      const send = serving(async (_, { caller }) => {
        callers.push(caller);
        return answer;
      });
      await send(dialect.plain);
      await send(dialect.plain, {}, '/e/e1/a/judge');
      expect(callers).toEqual(['root', 'judge']);
    });

    it.each(dialect.refused)('refuses %s', async (_, body, reason) => {
      const complete = vi.fn<Complete>();
      const response = await serving(complete)(body);
      expect(response.status).toBe(400);
      expect(response.headers.get('x-should-retry')).toBe('false');
      expect(dialect.readError(await response.json())).toMatch(reason);
      expect(complete).not.toHaveBeenCalled();
    });

    it.each<[string, unknown, number]>([
      ['no JSON', '{"model": "solver",', 400],
      ['nothing', '', 400],
      ['a list', [], 400],
      ['half a character', Uint8Array.of(0x22, 0xc3, 0x22), 400],
      ['a deep body', `${'['.repeat(5000)}${']'.repeat(5000)}`, 400],
      ['a long body', ' '.repeat(16e6 + 1), 413],
    ])('refuses %s', async (_, body, status) => {
      const response = await serving(async () => answer)(body);
      expect(response.status).toBe(status);
      expect(dialect.readError(await response.json())).not.toBe('');
    });

    it.each<[string, unknown, number, string]>([
      [
        'a refusal',
        new DialectError(404, 'unknown_agent', 'no such agent; there are solver, judge'),
        404,
        'no such agent',
      ],
      ['the end of the episode', new EpisodeOverError('the episode is over: timeout'), 400, 'the episode is over'],
      ['a mistake', new TypeError('x is not a function'), 500, 'x is not a function'],
    ])('tells %s in its own shape, streamed or not', async (_, error, status, message) => {
      for (const stream of [false, true]) {
        const send = serving(async () => {
          throw error;
        });
        const response = await send({ ...dialect.plain, stream });
        expect([response.status, response.headers.get('x-should-retry')]).toEqual([status, 'false']);
        expect(dialect.readError(await response.json())).toContain(message);
      }
    });

    it('refuses who has not the secret, and routes that are not there', async () => {
      const send = serving(async () => answer);
      const nobody = await send(dialect.plain, { headers: { authorization: 'Bearer wrong' } });
      expect(nobody.status).toBe(401);
      expect(dialect.readError(await nobody.json())).toBe('nobody knows this secret');
      const elsewhere = await send(dialect.plain, {}, '/v2');
      expect(elsewhere.status).toBe(404);
      expect(dialect.readError(await elsewhere.json())).toContain(dialect.route);
      const read = await send(undefined, { method: 'GET', body: null });
      expect(read.status).toBe(404);
    });

    it('takes the secret as a bearer or as an api key', async () => {
      const send = serving(async () => answer);
      expect((await send(dialect.plain, { headers: { 'x-api-key': 'right' } })).status).toBe(200);
      expect((await send(dialect.plain, { headers: {} })).status).toBe(401);
    });

    it('says when a client sends a request again', async () => {
      const retries: number[] = [];
      const texts = new Set<string>();
      const send = serving(async (_, { retry, text }) => {
        retries.push(retry);
        texts.add(text);
        return answer;
      });
      for (const count of ['0', '2', 'x', '-1'])
        await send(dialect.plain, { headers: { authorization: 'Bearer right', 'x-stainless-retry-count': count } });
      expect(retries).toEqual([0, 2, 0, 0]);
      expect(texts.size).toBe(1);
    });
  });

  describe(`an answer of ${name} that takes long`, () => {
    beforeEach(() => {
      vi.useFakeTimers();
    });
    afterEach(() => {
      vi.useRealTimers();
    });
    const late = (seconds: number, end: () => ModelAnswer): Complete => {
      return async () => {
        await takesTime(1000 * seconds);
        return end();
      };
    };
    const failing = () => {
      throw new EpisodeOverError('the episode is over: timeout');
    };
    const received = async (complete: Complete, body: object): Promise<Response & { readonly given: string }> => {
      const sent = serving(complete)(body);
      await vi.advanceTimersByTimeAsync(10_000);
      const response = await sent;
      const text = response.text();
      await vi.advanceTimersByTimeAsync(60_000);
      return Object.assign(response, { given: await text });
    };

    it('begins with spaces, which JSON allows, one every ten seconds', async () => {
      const { status, given } = await received(
        late(35, () => answer),
        dialect.plain,
      );
      expect(status).toBe(200);
      expect(/^ */.exec(given)?.[0]).toHaveLength(2); // at 20 and 30 s; at 10 s the headers
      expect(dialect.readBody(JSON.parse(given))).toMatchObject({ text: 'Fifteen.' });
    });

    it('begins with comments in a stream', async () => {
      const { given } = await received(
        late(35, () => answer),
        { ...dialect.plain, stream: true },
      );
      expect(given).toMatch(/^(: [^\n]*\n\n){2}(data|event): /);
      expect(dialect.readStream(eventsOf(given))).toMatchObject({ text: 'Fifteen.' });
    });

    it('ends with an error in the shape of the dialect, when it is too late for a status', async () => {
      const { given } = await received(late(35, failing), dialect.plain);
      expect(dialect.readError(JSON.parse(given))).toContain('the episode is over');
      const { given: streamed } = await received(late(35, failing), { ...dialect.plain, stream: true });
      expect(dialect.readError(eventsOf(streamed).at(-1)?.data)).toContain('the episode is over');
    });

    it.each([false, true])('is given up when the client goes away (streamed: %s)', async (stream) => {
      let signal: AbortSignal | undefined;
      const forever: Complete = (_, call) => {
        signal = call.signal;
        return new Promise(() => {});
      };
      const sent = serving(forever)({ ...dialect.plain, stream });
      await vi.advanceTimersByTimeAsync(10_000);
      const { body } = await sent;
      expect(signal?.aborted).toBe(false);
      await body?.cancel();
      expect(signal?.aborted).toBe(true);
    });
  });
}

/** The events of a stream, without comments; data that is JSON is parsed. */
function eventsOf(text: string): { event?: string; data: unknown }[] {
  return text.split('\n\n').flatMap((block) => {
    const lines = block.split('\n').filter((line) => line !== '' && !line.startsWith(':'));
    if (lines.length === 0) return [];
    const field = (name: string) => lines.find((line) => line.startsWith(`${name}: `))?.slice(name.length + 2);
    const data = field('data') ?? '';
    const event = field('event');
    return [{ ...(event === undefined ? {} : { event }), data: data === '[DONE]' ? data : JSON.parse(data) }];
  });
}
