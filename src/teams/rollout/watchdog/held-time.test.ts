import { expect, it } from 'vitest';
import { HeldTime, heldMs, ownThread } from './held-time.js';

const silence = { ticks: 5_000, clock: 5_100, processor: 4_900, waited: 0 };
const untold = { ...silence, waited: undefined };

it('a silence counts without the time in which the thread got no processor', () => {
  expect(heldMs(silence)).toBe(5_000);
  expect(heldMs({ ...silence, waited: 4_600, processor: 400 })).toBe(500);
  expect(heldMs({ ...silence, waited: 6_000, processor: 0 })).toBe(0);
  // A call that sleeps holds the others up, though it computes nothing.
  expect(heldMs({ ...silence, processor: 0 })).toBe(5_000);
});

it('counts the processor time if nothing tells that, and a part of the silence at least', () => {
  expect(heldMs(untold)).toBe(4_900);
  expect(heldMs({ ...untold, processor: 9_000 })).toBe(5_000);
  expect(heldMs({ ...untold, processor: 100 })).toBe(1_250);
});

it('reads the numbers of a thread, and does without those that the system does not tell', () => {
  for (const thread of [ownThread(), 0, -1]) {
    const held = new HeldTime(() => thread);
    for (const restarted of [false, true]) {
      if (restarted) held.restart();
      expect(held.ms(0)).toBe(0);
      expect(held.ms(1e9)).toBeGreaterThanOrEqual(0);
      expect(held.ms(1e9)).toBeLessThan(1e9);
    }
  }
});
