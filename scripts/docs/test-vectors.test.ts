import { readFileSync } from 'node:fs';
import { mean, standardDeviation } from '@drmas/engine/math';
import { describe, expect, it } from 'vitest';
import { estimateStep } from '../../src/method/advantage/estimate.js';
import { standard } from '../../src/runs/composition/standard.js';
import { opened, type TestVectors, testVectors, testVectorsText } from './test-vectors.js';

const text = readFileSync(new URL('../../docs/test-vectors.json', import.meta.url), 'utf8');
const { batches, vectors, tolerance } = JSON.parse(text) as TestVectors;
const turnsOf = (name: string) => batches.find((batch) => batch.name === name)?.turns ?? [];

describe('the test vectors that are published', () => {
  it('cover every one of these estimators, in a small file', () => {
    expect(text).toBe(testVectorsText());
    expect(JSON.parse(text)).toEqual(JSON.parse(JSON.stringify(testVectors())));
    expect(new Set(vectors.map(({ estimator }) => estimator.type))).toEqual(
      new Set(standard.estimators.map(({ type }) => type)),
    );
    expect(text.length).toBeLessThan(200_000);
  });

  it('are computed again from the file alone, with all of its settings written out', () => {
    for (const { estimator, after, batch, advantages } of vectors) {
      const before = after === undefined ? {} : estimateStep(turnsOf(after), opened(estimator)).state;
      const again = Array.from(estimateStep(turnsOf(batch), opened(estimator), before).advantages);
      expect(again).toHaveLength(advantages.length);
      again.flat().forEach((value, i) => {
        const expected = advantages.flat()[i] as number;
        expect(Math.abs(value - expected)).toBeLessThanOrEqual(tolerance * Math.max(1, Math.abs(expected)));
      });
    }
  });

  it('of agent-wise and of shared statistics agree with their formulas', () => {
    const plain = {
      drmas: (name: string) =>
        turnsOf(name).map(({ task, agent, reward }, _, turns) => {
          const peers = turns.filter((t) => t.task === task && t.agent === agent).map((t) => t.reward);
          return standardDeviation(peers) === 0 ? 0 : (reward - mean(peers)) / (standardDeviation(peers) + 1e-6);
        }),
      grpo: (name: string) =>
        turnsOf(name).map(({ task, episode }, _, turns) => {
          const inTask = turns.filter((t) => t.task === task);
          const scores = new Map(
            inTask.map((t) => [t.episode, mean(inTask.flatMap((u) => (u.episode === t.episode ? [u.reward] : [])))]),
          );
          const all = [...scores.values()];
          const spread = standardDeviation(all);
          return spread === 0 ? 0 : ((scores.get(episode) as number) - mean(all)) / (spread + 1e-6);
        }),
    };
    for (const [type, formula] of Object.entries(plain))
      for (const name of ['synchronous', 'escalation', 'uneven', 'singles']) {
        const { advantages = [] } = vectors.find((v) => v.estimator.type === type && v.batch === name) ?? {};
        expect(advantages.length).toBeGreaterThan(0);
        formula(name).forEach((value, i) => {
          expect(advantages[i], `${type} ${name}`).toBeCloseTo(value, 9);
        });
      }
  });
});
