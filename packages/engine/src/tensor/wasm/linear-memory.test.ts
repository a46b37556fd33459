import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { eventually, takesTime } from '../../../../../test/support/time-and-chance.js';
import { Blocks } from './blocks.js';
import { LinearMemory } from './linear-memory.js';

function create(): LinearMemory {
  const memory = new LinearMemory();
  memory.begin(1000);
  return memory;
}

describe('LinearMemory', () => {
  it('gives zeroed buffers that stay valid while it grows', () => {
    const memory = create();
    const first = memory.floats(1000);
    expect([...first]).toEqual(new Array(1000).fill(0));
    first.fill(7);
    const before = memory.memory.buffer.byteLength;
    const large = memory.integers(1 << 20);
    expect(memory.memory.buffer.byteLength).toBeGreaterThan(before);
    expect(first.length).toBe(1000);
    expect(new Float32Array(memory.memory.buffer, first.byteOffset, 1000).every((x) => x === 7)).toBe(true);
    expect(memory.holds(first.subarray(3, 5))).toBe(true);
    expect(memory.holds(large)).toBe(true);
    expect(memory.holds(new Float32Array(3))).toBe(false);
    expect(memory.holds(new Float32Array(memory.memory.buffer.slice(0, 64)))).toBe(false);
  });

  it('never gives two blocks that overlap, and everything again once all are released', () => {
    fc.assert(
      fc.property(fc.array(fc.tuple(fc.nat(300_000), fc.nat(5)), { maxLength: 60 }), (steps) => {
        const memory = create();
        const live: { address: number; bytes: number }[] = [];
        for (const [bytes, which] of steps) {
          const address = memory.take(bytes);
          expect(address % 64).toBe(0);
          expect(address).toBeGreaterThanOrEqual(1000);
          expect(address + bytes).toBeLessThanOrEqual(memory.memory.buffer.byteLength);
          for (const other of live) {
            expect(address + bytes <= other.address || other.address + other.bytes <= address).toBe(true);
          }
          live.push({ address, bytes: Math.max(1, bytes) });
          if (which < live.length) for (const { address } of live.splice(which, 1)) memory.release(address);
        }
        for (const { address } of live) memory.release(address);
        const size = memory.memory.buffer.byteLength;
        expect(memory.take(size - 1024)).toBe(1024);
        expect(memory.memory.buffer.byteLength).toBe(size);
      }),
      { seed: 1, numRuns: 50 },
    );
  });

  it('never gives two blocks that overlap to the threads that share it', () => {
    fc.assert(
      fc.property(fc.array(fc.tuple(fc.nat(2), fc.nat(3_000_000), fc.nat(5)), { maxLength: 40 }), (steps) => {
        const memory = create();
        const threads = [memory, new Blocks(memory.memory), new Blocks(memory.memory)] as const;
        const live: { address: number; bytes: number; thread: (typeof threads)[number] }[] = [];
        for (const [who, bytes, which] of steps) {
          const thread = threads[who] ?? memory;
          const address = thread.take(bytes);
          expect(address).toBeGreaterThanOrEqual(1000);
          expect(address + bytes).toBeLessThanOrEqual(memory.memory.buffer.byteLength);
          for (const other of live) {
            expect(address + bytes <= other.address || other.address + other.bytes <= address).toBe(true);
          }
          live.push({ address, bytes: Math.max(1, bytes), thread });
          if (which < live.length) for (const { address, thread } of live.splice(which, 1)) thread.release(address);
        }
      }),
      { seed: 1, numRuns: 50 },
    );
  });

  it('does not mind an address that no block has', () => {
    const memory = create();
    const address = memory.take(100);
    memory.release(0);
    memory.release(address + 64);
    memory.release(address);
    memory.release(address);
    expect(memory.take(100)).toBe(address);
    expect(memory.take(100)).not.toBe(address);
  });

  it('takes a buffer back when no view of it is left, and not before', async () => {
    setFlagsFromString('--expose-gc');
    const collect = runInNewContext('gc') as () => void;
    const memory = create();
    const views: Float32Array[] = [];
    (() => views.push(memory.floats(5000).subarray(10, 20).fill(3)))();
    const address = (views[0]?.byteOffset ?? 0) - 40;
    await takesTime(20);
    collect();
    await takesTime(20);
    expect(memory.take(20_000)).not.toBe(address);
    expect([...(views[0] ?? [])]).toEqual(new Array(10).fill(3));
    views.length = 0;
    await eventually(() => {
      collect();
      return memory.take(20_000) === address;
    });
  });

  it('says so when it is full', () => {
    const memory = create();
    expect(() => memory.floats(2 ** 30)).toThrow(
      /out of memory: the WebAssembly kernels hold 0 GiB and need \d+ bytes/,
    );
    expect(memory.floats(10)).toHaveLength(10);
  });
});
