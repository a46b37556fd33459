import { describe, expect, it } from 'vitest';
import { commandOf, FRESH_PAIRS, jobName, jobsOf, PAIRS } from '../harness/declaration.js';
import { questions } from './index.js';
import { LEMMA_SEEDS, SEEDS, SHORT_SWEEP_SEEDS, SWEEP_SEEDS } from './regimes.js';

const parts = questions.flatMap((question) => question.parts);

describe('the questions', () => {
  it('compare with an existing variant, and have different names', () => {
    for (const { variants, baseline } of parts) expect(variants.map(({ id }) => id)).toContain(baseline);
    const names = [...questions, ...parts].map(({ id }) => id);
    expect(new Set(names).size).toBe(names.length);
  });

  it('mean one run by one name, wherever two parts share it', () => {
    const commands = new Map<string, string>();
    for (const job of parts.flatMap(jobsOf)) {
      const command = commandOf(job).join(' ');
      expect(commands.get(jobName(job)) ?? command, jobName(job)).toBe(command);
      commands.set(jobName(job), command);
    }
  });

  it('choose learning rates on seeds that no claim rests on', () => {
    const claimed: (readonly number[])[] = [PAIRS, FRESH_PAIRS, ...Object.values(SEEDS)];
    expect(claimed.flat().filter((seed) => SWEEP_SEEDS.includes(seed))).toEqual([]);
    for (const { seeds } of parts)
      expect([[], ...claimed, SWEEP_SEEDS, SHORT_SWEEP_SEEDS, LEMMA_SEEDS, SEEDS.mechanism.slice(0, 3)]).toContainEqual(
        seeds,
      );
  });
});
