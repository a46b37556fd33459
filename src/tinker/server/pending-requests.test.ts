import { expect, it } from 'vitest';
import { DialectError } from '../../base/core/errors.js';
import { Futures } from './pending-requests.js';

it('counts open requests, answers and errors alike, and refuses more than its limit', async () => {
  const futures = new Futures(2);
  let answer: (value: number) => void = () => {};
  const first = futures.add(
    () =>
      new Promise((resolve) => {
        answer = resolve;
      }),
  );
  const second = futures.add(async () => {
    throw new Error('no such model');
  });
  expect(futures.pending).toBe(2);
  expect(() => futures.add(async () => 1)).toThrow(DialectError);
  expect(await futures.fetch(second, 1000)).toMatchObject({ type: 'error' });
  expect(futures.pending).toBe(1);
  answer(7);
  expect(await futures.fetch(first, 1000)).toEqual({ type: 'answer', answer: 7 });
  expect(futures.pending).toBe(0);
});

it('takes a request in without a look at all the others, which may be ten thousands', async () => {
  const futures = new Futures(Number.POSITIVE_INFINITY);
  const took = (count: number) => {
    const before = process.cpuUsage();
    for (let i = 0; i < count; i++) futures.add(async () => i);
    const { user, system } = process.cpuUsage(before);
    return (user + system) / 1e6; // seconds
  };
  expect(took(60_000)).toBeLessThan(2);
  await futures.idle();
  expect(futures.pending).toBe(0);
});

it('keeps a bounded number of results that nobody fetches, the newest ones', async () => {
  const futures = new Futures(1);
  const ids: string[] = [];
  for (let i = 0; i < 20_000; i++) {
    ids.push(futures.add(async () => i));
    await futures.fetch(ids.at(-1) as string, 1000);
  }
  const isKept = (id: string) =>
    futures.fetch(id, 1000).then(
      () => 1,
      () => 0,
    );
  const kept = await Promise.all(ids.map(isKept));
  const count = kept.reduce<number>((sum, each) => sum + each, 0);
  expect(count).toBeGreaterThanOrEqual(4096);
  expect(count).toBeLessThanOrEqual(8192);
  expect(kept.lastIndexOf(0)).toBeLessThan(kept.indexOf(1));
});

it('waits at the end for requests whose client still asks, and not for those whose client has gone', async () => {
  const futures = new Futures(2);
  const id = futures.add(() => new Promise(() => {}));
  let over = false;
  const idle = futures.idle(100).then(() => {
    over = true;
  });
  for (let i = 0; i < 4; i++) await futures.fetch(id, 60);
  expect(over).toBe(false);
  const gone = new AbortController();
  const poll = futures.fetch(id, 60_000, gone.signal);
  gone.abort();
  expect(await poll).toBe('pending');
  await idle;
  expect(futures.pending).toBe(1);
});
