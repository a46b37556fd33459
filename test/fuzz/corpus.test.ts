import { describe, expect, it } from 'vitest';
import { inputOf } from './mutate.js';
import { complaintAbout, corpus } from './target.js';
import { targets } from './targets/index.js';

describe('what the fuzzer found once', () => {
  it.each([...corpus()])('%s is taken or refused by name', async (name, input) => {
    const target = targets.find((each) => name.startsWith(`${each.name}--`));
    if (target === undefined) throw new Error(`no target for ${name}`);
    expect(await complaintAbout(target, input)).toBeUndefined();
  });
});

describe('the fuzzer', () => {
  it.each(targets.map((target) => [target.name, target] as const))(
    '%s: an input follows from its number',
    (_, target) => {
      const inputs = Array.from({ length: 20 }, (_, number) => inputOf(target, 1, number));
      expect(inputs.filter((input, number) => !input.equals(inputOf(target, 1, number)))).toEqual([]);
      expect(new Set(inputs.map(String)).size).toBeGreaterThan(10);
    },
  );

  it.each(targets.map((target) => [target.name, target] as const))(
    '%s takes its seeds without an error',
    async (_, target) => {
      for (const seed of target.seeds) expect(await complaintAbout(target, Buffer.from(seed))).toBeUndefined();
    },
  );
});
