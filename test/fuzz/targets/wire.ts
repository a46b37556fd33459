/**
 * The replies of servers: of the Tinker protocol, endpoints, retrievers, hubs. The first byte of an input chooses the
 * status, the rest is the body.
 */

import { endpointSchema } from '@drmas/engine/endpoints';
import { hubClient } from '@drmas/engine/internal/hub/hub-client';
import { openEndpoint } from '@drmas/engine/node';
import { readArchive } from '@drmas/engine/platform';
import { futureAnswer, passAnswer, sampleAnswer, savedAnswer } from '@drmas/tinker/internal/client/wire/answers';
import { checkedSample, rowOf } from '@drmas/tinker/internal/client/wire/datum';
import { Http } from '@drmas/tinker/internal/client/wire/http';
import type { z } from 'zod';
import { searchR1Retriever } from '../../../src/teams/tasks/retrieval/search-r1.js';
import type { Target } from '../target.js';

const STATUSES = [200, 200, 200, 200, 201, 204, 304, 307, 400, 401, 404, 408, 409, 422, 429, 500, 503];
const ADDRESS = 'http://127.0.0.1:1/v1';

/** Every request is answered by the input while `ask` runs. */
async function answering<T>(input: Buffer, ask: () => Promise<T>): Promise<T> {
  const real = globalThis.fetch;
  const status = STATUSES[(input[0] ?? 0) % STATUSES.length] as number;
  const body = [204, 304].includes(status) ? null : Uint8Array.from(input.subarray(1));
  globalThis.fetch = async () => new Response(body, { status, headers: { location: '/again' } });
  try {
    return await ask();
  } finally {
    globalThis.fetch = real;
  }
}

const never = new AbortController().signal;
const seeds = (...bodies: readonly unknown[]) => bodies.map((body) => `\u0000${JSON.stringify(body)}`);
/** Errors that name the server: an episode's failure, not a run's. */
const named = ({ message }: Error) => message.startsWith('http://127.0.0.1:1/');

const timing = { request: 1, total: 1, heartbeat: 1, backOff: 0, retries: 0 };
const http = new Http({ url: ADDRESS, apiKey: undefined, timing, signal: new AbortController().signal });
const row = { data: [-1, -2.5, -0.1], dtype: 'float32', shape: [3] };
const answerOf = <S extends z.ZodType>(input: Buffer, schema: S) =>
  answering(input, () => http.ask('x', {}, schema, { repeatable: false }));

const tinker: Target = {
  name: 'tinker-answers',
  seeds: seeds(
    { request_id: '1', model_id: 'm' },
    { loss_fn_outputs: [{ logprobs: row, elementwise_loss: row }], metrics: { 'grad_norm:mean': 1.5 } },
    { sequences: [{ tokens: [1, 2], logprobs: [-1, -2], stop_reason: 'stop' }], prompt_logprobs: [null, -1] },
    { path: 'tinker://m/weights/a', sampling_session_id: null },
    { detail: [{ loc: ['body', 'x'], msg: 'Field required' }] },
    { type: 'RequestFailedResponse', error_message: 'Traceback\nno' },
    { error: 'Adapter not found', category: 'User' },
  ),
  words: ['null', 'NaN', '1e999', 'try_again', 'detail', 'error', 'logprobs', 'data', 'Infinity', 'model not found'],
  inputs: 37_000,
  async run(input) {
    const failures: unknown[] = [];
    const asks = [
      () => answerOf(input, futureAnswer),
      () => answerOf(input, savedAnswer),
      () =>
        answerOf(input, passAnswer).then(({ loss_fn_outputs }) => {
          for (const output of loss_fn_outputs)
            if (!rowOf(output, new Int32Array(4)).every(Number.isFinite)) throw new TypeError('a row has no numbers');
        }),
      () =>
        answerOf(input, sampleAnswer).then((answer) => {
          const wish = {
            prompt: [1],
            temperature: 1,
            topP: 1,
            topK: 0,
            maxTokens: 4,
            stopTokens: [],
            key: [0, 1],
          } as const;
          const source = { server: ADDRESS, policy: 'p' };
          const { tokens, logprobs } = checkedSample(answer, wish, { vocabSize: 300, context: 64 }, source);
          if (!Int32Array.from(tokens).every((id, t) => id === tokens[t] && id >= 0 && id < 300))
            throw new TypeError('an id is not in the vocabulary');
          if (!Float32Array.from(logprobs).every((each) => each <= 0.1 && Number.isFinite(each)))
            throw new TypeError('a log-prob is not one');
        }),
    ];
    // One after the other: each puts `fetch` back.
    for (const ask of asks) await ask().catch((error: unknown) => failures.push(error));
    const [failure] = failures
      .sort((a, b) => Number(a instanceof TypeError) - Number(b instanceof TypeError))
      .reverse();
    if (failure !== undefined) throw failure;
  },
};

const options = { type: 'endpoint', url: ADDRESS, model: 'm', apiKey: 'sk-very-secret', retries: 0 };
const spec = endpointSchema.parse(options);
const request = { messages: [], temperature: 1, topP: 1, topK: 0, maxTokens: 1, seed: 1 };

const endpoint: Target = {
  name: 'endpoint-answers',
  seeds: seeds(
    { choices: [{ message: { content: 'x' }, finish_reason: 'stop' }], usage: { prompt_tokens: 1 } },
    { error: { message: 'no sk-very-secret', type: 'x' } },
  ),
  words: ['choices', 'message', 'content', 'null', '[]', '{}', 'sk-very-secret', '\\u0073k-very-secret'],
  inputs: 8_000,
  async run(input) {
    const shown = await answering(input, () => openEndpoint(spec, {}).complete(request, never)).then(
      ({ text }) => text,
      (error: Error) => {
        if (!named(error)) throw error;
        return error.message;
      },
    );
    if (shown.includes('sk-very-secret')) throw new TypeError('the key is shown');
  },
};

const retriever: Target = {
  name: 'retriever-answers',
  seeds: seeds({
    result: [
      [
        { document: { contents: '"t"\nx' }, score: 1 },
        { title: 'a', text: 'b' },
      ],
    ],
  }),
  words: ['result', 'document', 'contents', 'null', '[]', '{}'],
  inputs: 15_000,
  run: (input) =>
    answering(input, () => searchR1Retriever({ url: ADDRESS, retries: 0, cacheSize: 0 }).search('who', 2, never)),
  allows: named,
};

const hub: Target = {
  name: 'hub-answers',
  seeds: seeds({ _id: '1', id: 'a/b', sha: 'c'.repeat(40), lastModified: '2026-01-01T00:00:00.000Z' }, [
    { type: 'file', path: 'config.json', size: 3, oid: 'a'.repeat(40), lfs: { oid: 'b'.repeat(64), size: 9 } },
  ]),
  words: ['sha', 'null', 'file', 'directory', '../', 'oid', 'size', '-1'],
  inputs: 8_000,
  run: (input) =>
    answering(input, async () => {
      const client = hubClient({ name: 'a/b', revision: 'main' }, {}, never);
      await client.commit().catch(() => {});
      return client.files('c'.repeat(40));
    }),
};

const tar = Buffer.alloc(1536);
tar.write('x/adapter_config.json', 0);
tar.write('00000000003\0', 124);
tar.write('0', 156);
tar.write('ustar', 257);
tar.write('abc', 512);

const archive: Target = {
  name: 'archive',
  seeds: [tar],
  words: [],
  inputs: 110_000,
  run: (input) => readArchive(input),
};

export const wire = [tinker, endpoint, retriever, hub, archive];
