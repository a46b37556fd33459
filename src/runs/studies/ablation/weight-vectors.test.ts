import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { evaluation } from '../../../../test/fixtures/run-events.js';
import { drmas } from '../../../../test/support/command-line.js';
import { quickPlace } from '../../../../test/support/quick-place.js';
import { temporaryRoot, tinyDefinition } from '../../../../test/support/tiny-run.js';
import type { RunPlace } from '../../run/start-run.js';
import { ablateIn } from './ablate.js';
import { weightVectors } from './weight-vectors.js';

const root = temporaryRoot();

describe('vectors of weights', () => {
  it('sum to 1, from all weight on one part to all weight on another', () => {
    expect(weightVectors(['correct', 'calls'], 3)).toEqual({
      'correct 1.00, calls 0.00': ['training.partWeights.correct=1', 'training.partWeights.calls=0'],
      'correct 0.50, calls 0.50': ['training.partWeights.correct=0.5', 'training.partWeights.calls=0.5'],
      'correct 0.00, calls 1.00': ['training.partWeights.correct=0', 'training.partWeights.calls=1'],
    });
    const three = Object.values(weightVectors(['a', 'b', 'c'], 5));
    expect(three.length).toBe(15);
    for (const overrides of three)
      expect(overrides.reduce((sum, override) => sum + Number(override.split('=')[1]), 0)).toBe(1);
  });

  it.each([
    [['correct'], 5, /at least two named parts/],
    [['correct', 'correct'], 5, /at least two named parts/],
    [['a.b', 'c'], 5, /'a\.b' is no name/],
    [['a', 'b'], 1, /points: expected at least 2/],
    [['a', 'b', 'c', 'd'], 11, /286 vectors/],
  ])('are refused for %j in %d points', (parts, points, message) => {
    expect(() => weightVectors(parts, points)).toThrow(message);
  });
});

describe('an ablation over vectors of weights', () => {
  const parts = ['correct', 'calls'];
  const executeRun: RunPlace['executeRun'] = async ({ training: { partWeights = {} } }, run) => {
    const { correct = 1 } = partWeights;
    run.emit({ ...evaluation(0, 0.5), parts: { correct: 0.5, calls: -1 } });
    run.emit({ ...evaluation(2, 0.5), parts: { correct: Math.sqrt(correct), calls: -1 - correct ** 2 } });
  };

  it('marks the variants that no other one beats, and resumes', async () => {
    const run = join(root, 'front');
    const options = { variants: weightVectors(parts, 3), parts, seeds: 1, run, threads: 1 };
    const { pareto } = await ablateIn({ ...quickPlace, executeRun }, tinyDefinition(), options);
    expect(pareto?.points.map(({ values, front }) => [...values, front])).toEqual([
      [1, -2, true],
      [Math.sqrt(0.5), -1.25, true],
      [0, -1, true],
    ]);
    expect(pareto?.hypervolume).toBeCloseTo(Math.sqrt(0.5) * 0.75, 12);
  });

  it('plots them, and resumes', async () => {
    const run = join(root, 'drawn');
    const { code, out } = await drmas(
      ['ablate', 'math', '--weights', 'correct,calls', '--points', '3', '--seeds', '2', '--run', run],
      { place: { ...quickPlace, executeRun } },
    );
    expect(code).toBe(0);
    expect(out).toMatch(/a +correct 1\.00, calls 0\.00 +1\.00 +-2\.00 +on the front/);
    expect(out).toContain('they cover 0.53 of the box');
    const picture = out.slice(out.indexOf('\ncalls\n'));
    expect(picture.split('\n')[2]).toMatch(/^ +-1\.00 \|c/);
    expect(picture).toMatch(/\n +-2\.00 \| +a\n +0 +1\.00\n/);
    const again = await drmas(['ablate', run], { place: { ...quickPlace, executeRun } });
    expect(again.out).toContain('they cover 0.53 of the box');
  });

  it.each([
    [['--weights', 'correct,calls', '--variant', 'a=seed=1'], /--weights and --variant exclude each other/],
    [['--points', '3', '--vary', 'advantage.type=grpo,drmas'], /--points needs --weights/],
  ])('refuses %j', async (words, message) => {
    const { code, err } = await drmas(['ablate', 'math', ...words]);
    expect(code).toBe(2);
    expect(err).toMatch(message);
  });
});
