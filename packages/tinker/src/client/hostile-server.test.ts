// @module-tag verify
import type { ServerResponse } from 'node:http';
import { gzipSync } from 'node:zlib';
import { BackendError } from '@drmas/engine/errors';
import { randomKey } from '@drmas/engine/math';
import type { TrainingSample } from '@drmas/engine/nouns';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { plainAdamW } from '../../../../test/support/adamw.js';
import { repeatedly } from '../../../../test/support/time-and-chance.js';
import { writeBaseModel } from '../../../../test/support/tinker-fake/base-model.js';
import { adapterOn, openOnFake } from '../../../../test/support/tinker-fake/open.js';
import { temporaryRoot } from '../../../../test/support/tiny-run.js';

const root = temporaryRoot();
let directory = '';
const open: { close(): Promise<void> }[] = [];
beforeAll(async () => {
  directory = await writeBaseModel(root);
});
afterAll(() => Promise.all(open.map((each) => each.close())));

type Answer = (response: ServerResponse, honest: unknown) => void;

const text =
  (status: number, body: string, type = 'application/json'): Answer =>
  (response) =>
    void response.writeHead(status, { 'content-type': type }).end(body);

/** The honest answer with every list of numbers changed, or with this text in the place of every number in one. */
const lists =
  (change: (list: number[]) => readonly unknown[]): Answer =>
  (response, honest) => {
    const changed = (_: string, value: unknown) =>
      Array.isArray(value) && value.length > 0 && value.every((each) => typeof each === 'number')
        ? change(value)
        : value;
    text(200, JSON.stringify(honest, changed).replaceAll('"raw:', '').replaceAll(':raw"', ''))(response, honest);
  };

const hostility: Record<string, Answer> = {
  'a page of HTML': text(200, '<html><body>502 Bad Gateway</body></html>', 'text/html'),
  nothing: text(200, ''),
  'half a body': (response, honest) => {
    const whole = JSON.stringify(honest);
    response.writeHead(200, { 'content-length': whole.length });
    response.write(whole.slice(0, whole.length / 2), () => response.destroy());
  },
  'another type': text(200, '[1, 2, 3]'),
  null: text(200, 'null'),
  'lists that are shorter': lists((list) => list.slice(1)),
  'lists that are longer': lists((list) => [...list, list[0]]),
  'lists that are empty': lists(() => []),
  'NaN as JSON has none': lists((list) => list.map(() => 'raw:NaN:raw')),
  'numbers beyond infinity': lists((list) => list.map(() => 'raw:1e999:raw')),
  'null for numbers': lists((list) => list.map(() => null)),
  'huge numbers': lists((list) => list.map(() => 1e308)),
  'numbers that are almost none': lists((list) => list.map(() => -1e308)),
  'probabilities above 1': lists((list) => list.map((each) => Math.abs(each) + 1)),
  'texts for numbers': lists((list) => list.map(String)),
  'an endless redirect': (response) => void response.writeHead(307, { location: '?again' }).end(),
  'a redirect elsewhere': (response) => void response.writeHead(308, { location: 'http://127.0.0.1:1/' }).end(),
  'nesting without end': text(200, '['.repeat(200_000)),
  'a bomb': (response) => void response.writeHead(200, { 'content-encoding': 'gzip' }).end(bomb),
  'one byte at a time': (response) => {
    response.writeHead(200, { 'content-type': 'application/json' });
    const end = repeatedly(20, () => (response.destroyed ? end() : response.write(' ')));
  },
};
const bomb = gzipSync(Buffer.alloc(80e6, ' '));

const PATHS = ['forward', 'forward_backward', 'optim_step', 'save_weights', 'save_weights_for_sampler', 'asample'];

const tokens = [3, 4, 5, 6, 7, 8];
const sample: TrainingSample = {
  tokens: Int32Array.from(tokens),
  mask: Uint8Array.from(tokens, (_, t) => (t < 2 ? 0 : 1)),
  behaviourLogprobs: new Float32Array(6).fill(-5.5),
  advantages: new Float32Array(6).fill(-1),
  temperature: 1,
  policyVersion: 0,
  agent: 'agent',
};

/** A policy, and a round of training: publish, sample, update. */
async function served() {
  const all = await openOnFake({ directory, behaves: 'skyrl-train', pollMs: 50 }, { profile: 'skyrl-train' });
  open.push({ close: () => all.backend.dispose().then(() => all.fake.close()) });
  const policy = await all.backend.open(adapterOn(directory), 'policy', 'one');
  const request = { prompt: [3, 4], temperature: 1, topP: 1, topK: 0, maxTokens: 3, stopTokens: [] };
  const round = [
    () => policy.publish(),
    () => policy.generate({ ...request, key: randomKey('hostile') }),
    async () => {
      const loss = { type: 'ppo-clip', clip: 0.2, aggregate: 'token-mean' } as const;
      const computed = policy.forwardBackward([sample], { loss, normalizer: 1 });
      computed.catch(() => {}); // the update says it too
      return policy.optimStep({ optimizer: plainAdamW(1e-2), clipNorm: 1 });
    },
  ];
  const weights = async () => [...((await policy.logprobs([sample]))[0] as Float32Array)];
  return { ...all, round, weights };
}

/** Every action either gives numbers that are finite, or ends by name. */
async function play(round: readonly (() => Promise<unknown>)[]): Promise<void> {
  for (const action of round) {
    const outcome = await action().catch((error: unknown) => error);
    if (outcome instanceof Error) expect(outcome).toBeInstanceOf(BackendError);
    else expect(JSON.stringify(outcome)).not.toMatch(/null/);
  }
}

describe('a server that answers with', () => {
  it.each(Object.entries(hostility))(
    '%s: no such number reaches the weights, and training goes on',
    async (_, answer) => {
      const { fake, round, weights } = await served();
      await play(round);
      for (const path of [...PATHS, 'retrieve_future', 'retrieve_future'])
        fake.inject(path, { type: 'answer', answer });
      for (let i = 0; i < 3; i++) await play(round);
      fake.calm();
      expect((await weights()).every((logprob) => Number.isFinite(logprob) && logprob <= 0.01)).toBe(true);
      for (const action of round) await expect(action()).resolves.toBeDefined();
      expect((await weights()).every(Number.isFinite)).toBe(true);
    },
    60_000,
  );

  it.each([500, 502, 503])(
    '%i to everything: ends by name within its deadline, without a storm of requests',
    async (status) => {
      const { fake, round } = await served();
      await play(round);
      const before = fake.log.length;
      for (const path of [...PATHS, 'retrieve_future'])
        for (let i = 0; i < 1000; i++) fake.inject(path, { type: 'status', status, body: 'Server Error' });
      await play(round);
      expect(fake.log.length - before).toBeLessThan(200);
    },
    60_000,
  );
});
