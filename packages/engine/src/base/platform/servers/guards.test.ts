import { describe, expect, it } from 'vitest';
import { allowedHost, guardOf } from './guards.js';

const guardWith = (...names: string[]) =>
  guardOf({
    ...{ access: { type: 'local' }, allowedHosts: names.map((name) => allowedHost(name) ?? ''), mostBytes: 10 },
    refuse: ({ message }, _) => new Response(message, { status: 403 }),
  });
const asked = (host: string, more = {}) => new Request('http://localhost/', { headers: { host, ...more } });

describe('an allowed host', () => {
  it.each([
    ['Train.Example', 'train.example'],
    ['train.example', 'TRAIN.example:8080'],
    ['gpu:8000', 'gpu:9000'],
    ['müller.example', 'xn--mller-kva.example'],
    ['fe80::1', '[fe80::1]:80'],
    ['[fe80::1]', '[fe80::1]'],
  ])('%s is the one of a request for %s', (name, host) => {
    expect(guardWith(name)(asked(host))).toBeUndefined();
    expect(guardWith(name)(asked(host, { origin: `http://${host}` }))).toBeUndefined();
    expect(guardWith()(asked(host))?.status).toBe(403);
    expect(guardWith(name)(asked('other.example'))?.status).toBe(403);
  });

  it.each(['', 'http://train.example', 'train.example/x', 'a b', 'a@b', '*.train.example'])('is not %j', (name) => {
    expect(allowedHost(name)).toBeUndefined();
  });
});
