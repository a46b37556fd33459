import { afterEach, expect, it } from 'vitest';
import { macrotask } from './macrotask.js';

const { setImmediate } = globalThis;
afterEach(() => {
  globalThis.setImmediate = setImmediate;
});

it.each(['Node', 'a browser'])('waits for every microtask, and keeps the order, in %s', async (where) => {
  if (where === 'a browser') Object.assign(globalThis, { setImmediate: undefined });
  const order: string[] = [];
  const done = new Promise<void>((resolve) => {
    macrotask(() => order.push('first'));
    macrotask(() => {
      order.push('second');
      resolve();
    });
  });
  let chain = Promise.resolve();
  for (let i = 0; i < 5; i++) chain = chain.then(() => void order.push('micro'));
  await done;
  expect(order).toEqual([...new Array(5).fill('micro'), 'first', 'second']);
});
