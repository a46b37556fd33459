import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { afterEach, describe, expect, it } from 'vitest';
import { z } from 'zod';
import { eventually, timeForMishaps } from '../../../../test/support/time-and-chance.js';
import { type SearchR1Options, searchR1Retriever } from './search-r1.js';

interface Ask {
  readonly queries: string[];
  readonly topk: number;
  readonly return_scores: boolean;
}

let server: Server | undefined;
afterEach(() => {
  server?.closeAllConnections();
  server?.close();
});

type Handler = (ask: Ask, response: ServerResponse, request: IncomingMessage) => void;

/** A server on this machine that records its requests, and a retriever that calls it. */
async function serve(handler: Handler, options: Partial<SearchR1Options> = {}) {
  const requests: Ask[] = [];
  const opened = createServer(async (request, response) => {
    let body = '';
    for await (const chunk of request) body += chunk;
    const ask = JSON.parse(body) as Ask;
    requests.push(ask);
    handler(ask, response, request);
  });
  server = opened;
  await new Promise<void>((resolve) => opened.listen(0, '127.0.0.1', resolve));
  const url = `http://127.0.0.1:${(opened.address() as AddressInfo).port}`;
  const retriever = searchR1Retriever({ url, retryDelayMs: 1, ...options });
  const search = (query: string, topk = 3, signal = new AbortController().signal) =>
    retriever.search(query, topk, signal);
  return { requests, search, url };
}

const json = (response: ServerResponse, value: unknown, status = 200) => {
  response.writeHead(status, { 'content-type': 'application/json' });
  response.end(JSON.stringify(value));
};
const echo: Handler = ({ queries, topk }, response) =>
  json(response, {
    result: queries.map((query) =>
      Array.from({ length: topk }, (_, i) => ({
        document: { id: `${i}`, contents: `"${query}"\ntext ${i}` },
        score: 1 - i,
      })),
    ),
  });

describe('a Search-R1 retriever', () => {
  it('follows the protocol and reads titles and texts', async () => {
    const { requests, search } = await serve((ask, response, request) => {
      expect([request.method, request.url]).toEqual(['POST', '/retrieve']);
      expect(request.headers['content-type']).toContain('application/json');
      echo(ask, response, request);
    });
    expect(await search('who?', 2)).toEqual([
      { title: 'who?', text: 'text 0' },
      { title: 'who?', text: 'text 1' },
    ]);
    expect(requests).toEqual([{ queries: ['who?'], query: 'who?', topk: 2, return_scores: true }]);
  });

  it.each([
    ["Search-R1's", z.object({ queries: z.array(z.string()), topk: z.int().optional(), return_scores: z.boolean() })],
    ["the paper's", z.object({ query: z.string(), topk: z.int().optional(), return_scores: z.boolean() })],
  ])('is understood by a server that validates %s request', async (_, schema) => {
    const { search } = await serve((ask, response, request) =>
      schema.safeParse(ask).success ? echo(ask, response, request) : json(response, { detail: 'Field required' }, 422),
    );
    expect((await search('who?', 1))[0]?.title).toBe('who?');
  });

  it('reads documents without scores, with titles of their own, up to the requested number', async () => {
    const documents = [{ contents: 'A\none' }, { title: 'B', text: 'two' }, { text: 'three' }, { text: 'four' }];
    const { search } = await serve((_, response) => json(response, { result: [documents] }));
    expect(await search('q', 3)).toEqual([{ title: 'A', text: 'one' }, { title: 'B', text: 'two' }, { text: 'three' }]);
    expect(await (await serve((_, response) => json(response, { result: [[]] }))).search('q')).toEqual([]);
  });

  it('retries after a temporary error of the server, and stops after the last attempt', async () => {
    for (const status of [429, 500, 503]) {
      const { requests, search } = await serve((ask, response, request) =>
        requests.length <= 2 ? json(response, 'busy', status) : echo(ask, response, request),
      );
      expect((await search('q', 1)).length).toBe(1);
      expect(requests.length).toBe(3);
    }
    const { requests, search, url } = await serve((_, response) => json(response, 'busy', 503), { retries: 1 });
    await expect(search('q')).rejects.toThrow(`${url}/retrieve: status 503 (2 attempts)`);
    expect(requests.length).toBe(2);
  });

  it('repeats requests that get no answer: in time, at all, or to the end', async () => {
    for (const failing of [() => {}, (response: ServerResponse) => response.destroy()]) {
      const { requests, search } = await serve(
        (ask, response, request) => (requests.length === 1 ? failing(response) : echo(ask, response, request)),
        { timeoutMs: 500 },
      );
      expect((await search('q', 1)).length).toBe(1);
    }
    const slow = await serve(() => {}, { timeoutMs: 20, retries: 1 });
    await expect(slow.search('q')).rejects.toThrow('no answer within 20 ms (2 attempts)');
    const nobody = searchR1Retriever({ url: 'http://127.0.0.1:1', retries: 1, retryDelayMs: 1 });
    await expect(nobody.search('q', 1, new AbortController().signal)).rejects.toThrow('(2 attempts)');
  });

  it.each([
    [
      'a refusal',
      (response: ServerResponse) => json(response, 'what?', 422),
      'status 422: "what?"; drmas posts { queries: [text] } (Search-R1), query: text',
    ],
    ['no JSON', (response: ServerResponse) => void response.end('<html>'), 'JSON'],
    ['something else', (response: ServerResponse) => json(response, { results: [] }), "the answer is not Search-R1's"],
    ['no list', (response: ServerResponse) => json(response, { result: [] }), 'has no list for the query'],
  ])('fails at once on %s', async (_, answer, message) => {
    const { requests, search } = await serve((_, response) => answer(response));
    await expect(search('q')).rejects.toThrow(message);
    expect(requests.length).toBe(1);
  });

  it('limits the number of open requests', async () => {
    let running = 0;
    let most = 0;
    const waiting: (() => void)[] = []; // three are answered once all three are here
    const { requests, search } = await serve(
      (ask, response, request) => {
        most = Math.max(most, ++running);
        waiting.push(() => {
          running--;
          echo(ask, response, request);
        });
        if (waiting.length < 3) return;
        setImmediate(() => {
          for (const answer of waiting.splice(0)) answer();
        });
      },
      { concurrency: 3 },
    );
    const results = await Promise.all(Array.from({ length: 12 }, (_, i) => search(`q${i}`, 1)));
    expect(results.map(([passage]) => passage?.title)).toEqual(Array.from({ length: 12 }, (_, i) => `q${i}`));
    expect([requests.length, most]).toEqual([12, 3]);
  });

  it('caches the latest queries, and sends simultaneous equal queries once', async () => {
    const { requests, search } = await serve(echo, { cacheSize: 2 });
    await Promise.all([search('a'), search('a'), search('a', 1), search('a')]);
    expect(requests.length).toBe(2);
    await search('a'); // now the request with topk 1 is the oldest
    await search('b');
    await search('a');
    expect(requests.length).toBe(3);
    await search('a', 1);
    expect(requests.length).toBe(4);
  });

  it('does not remember failures', async () => {
    const { requests, search } = await serve((ask, response, request) =>
      requests.length === 1 ? json(response, 'no', 400) : echo(ask, response, request),
    );
    await expect(search('q')).rejects.toThrow('status 400');
    expect((await search('q', 1)).length).toBe(1);
  });

  it('aborts a search when no caller waits for it any more, and not before', async () => {
    const closed: string[] = [];
    const { requests, search } = await serve(({ queries }, response) => {
      response.on('close', () => closed.push(queries[0] ?? ''));
    });
    const [one, two] = [new AbortController(), new AbortController()];
    const first = expect(search('q', 1, one.signal)).rejects.toThrow('first');
    const second = expect(search('q', 1, two.signal)).rejects.toThrow('second');
    await eventually(() => requests.length > 0);
    one.abort(new Error('first'));
    await first;
    await timeForMishaps(20);
    expect(closed).toEqual([]);
    two.abort(new Error('second'));
    await second;
    await eventually(() => closed.length > 0);
    expect(requests.length).toBe(1);
    await expect(search('q', 1, one.signal)).rejects.toThrow('first');
  });

  it('takes the address with or without /retrieve, and refuses options that make no sense', async () => {
    const { url } = await serve(echo);
    for (const path of ['', '/', '/retrieve', '/retrieve/']) {
      const retriever = searchR1Retriever({ url: `${url}${path}` });
      expect((await retriever.search('q', 1, new AbortController().signal)).length).toBe(1);
    }
    expect(() => searchR1Retriever({ url: 'localhost' })).toThrow(/^searchR1Retriever\(\.\.\.\): url: /);
    expect(() => searchR1Retriever({ url, retries: -1 })).toThrow('retries');
    expect(() => searchR1Retriever({ url, timeout: 3 } as SearchR1Options)).toThrow('timeout');
  });
});
