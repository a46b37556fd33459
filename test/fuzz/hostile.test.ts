/** Each field of each format, with each value that an attacker may put there. */
import { describe, expect, it } from 'vitest';
import { hostileInputs } from './mutate.js';
import { complaintAbout, type Target } from './target.js';
import { targets } from './targets/index.js';

/** The inputs of a format that are tried at most, spread over all of its fields and values. */
const [DAILY, SLOW] = [80, 2500];

async function complaints(target: Target, most: number): Promise<string[]> {
  const all = [...hostileInputs(target)];
  const every = Math.ceil(all.length / most);
  const found: string[] = [];
  for (const { place, input } of all.filter((_, number) => number % every === 0)) {
    const complaint = await complaintAbout(target, input());
    if (complaint !== undefined) found.push(`${place}: ${complaint.slice(0, 500)}`);
  }
  return found;
}

const inJson = targets
  .filter((target) => hostileInputs(target).next().done !== true)
  .map((target) => [target.name, target] as const);

describe('a hostile value in a field is taken or refused by name', () => {
  it.each(inJson)('%s, a part', async (_, target) => {
    expect(await complaints(target, DAILY)).toEqual([]);
  });

  it.each(inJson)('%s, many', { tags: 'verify', timeout: 600_000 }, async (_, target) => {
    expect(await complaints(target, SLOW)).toEqual([]);
  });
});
