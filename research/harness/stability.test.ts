import { describe, expect, it } from 'vitest';
import { PartResults } from './analysis.js';
import { type Job, jobsOf } from './declaration.js';
import { fakePart, fakeTrain } from './fake-results.js';
import {
  collapseTable,
  lemmaTable,
  normsFigure,
  pairedRegimes,
  SPIKES,
  spikesTable,
  stabilityCounts,
  stabilityTable,
} from './stability.js';
import type { Results } from './stored-result.js';

const part = fakePart({ doses: [1, 2] });

/** Results in which the norms of Dr. MAS are half of GRPO's, and its runs have two spikes more. */
const results: Results = {
  isStale: () => false,
  of: (job: Job) => {
    if (job.kind === 'probe') return undefined;
    const run = fakeTrain(job, 0.5);
    const { solver } = run.agents;
    if (solver === undefined) throw new Error('no agent');
    const isOwn = job.variant.id === 'drmas';
    const norms = { norm: (isOwn ? 1 : 2) + job.seed / 100, maxNorm: isOwn ? 3 : 6, spikes: isOwn ? 2 : 0 };
    return { ...run, agents: { solver: { ...solver, ...norms } } };
  },
};

describe('stability', () => {
  it('compares norms as ratios and spikes as differences, and counts the regimes', () => {
    const regimes = pairedRegimes([part, part], results);
    expect(regimes.map(({ regime }) => regime.id)).toEqual(['dose-1', 'dose-2']);
    expect(stabilityTable(regimes)).toMatch(
      /^\| `dose-1`, solver \| 0\.5\d \[.*\] \| 0\.50 \[.*\] \| \+2\.0 \[.*\] \|$/m,
    );
    expect(stabilityCounts(regimes)).toContain('| mean norm | 2 | 0 | 0 |');
    expect(stabilityCounts(regimes)).toContain('| spikes a run | 0 | 2 | 0 |');
  });

  it('leaves out regimes with too few pairs', () => {
    const some = { ...results, of: (job: Job) => (job.seed < 15 ? results.of(job) : undefined) };
    expect(jobsOf(part).length).toBeGreaterThan(0);
    expect(pairedRegimes([part], some)).toEqual([]);
  });
});

describe("the lemma's factor", () => {
  const seeds = part.seeds.slice(0, 3);
  /** Runs with a predicted factor of 2 and 4, and a measured one `times` that, a little more for each seed. */
  const measuredAt = (times: number, spread = 0.01): Results => ({
    ...results,
    of: (job: Job) => {
      const run = fakeTrain(job, 0.5);
      const { solver } = run.agents;
      if (solver === undefined) throw new Error('no agent');
      const factor = times * (1 + spread * seeds.indexOf(job.seed));
      const measured = [2, 4].map((predicted, i) => ({ step: 1 + 10 * i, predicted, measured: factor * predicted }));
      return { ...run, agents: { solver: { ...solver, measured } } };
    },
  });
  const rowsOf = (of: Results) =>
    lemmaTable({ ...part, seeds }, of)
      .split('\n')
      .slice(2);

  it('has a row for each team, agent and estimator, with the covariance as the difference of the means', () => {
    const rows = rowsOf(measuredAt(1.1, 0));
    expect(rows).toHaveLength(part.regimes.length * part.variants.length);
    expect(rows[0]).toMatch(/ solver \| `grpo` \| 3\.00 \| 3\.30 \| \+0\.30 \| 1\.10 \[1\.10, 1\.10\]: holds \|$/);
  });

  it.each([
    [1, 0.01, 'holds'],
    [2, 0.01, 'does not hold'],
    [0.5, 0.01, 'does not hold'],
    [1.2, 0.3, 'open'],
  ])(
    'counts as the prediction only if its interval lies within a quarter: %d times, spread %d',
    (times, spread, verdict) => {
      expect(rowsOf(measuredAt(times, spread))[0]).toMatch(new RegExp(`\\]: ${verdict} \\|$`));
    },
  );

  it('is not run yet without measurements', () => {
    expect(lemmaTable({ ...part, seeds }, results)).toContain('not run yet');
  });
});

describe('the hunt for a collapse', () => {
  const [first] = part.regimes;
  const high = {
    ...part,
    regimes: [{ ...first, recipe: 'repair', agent: 'solver' }] as typeof part.regimes,
    variants: ['grpo-at-0.01', 'drmas-at-0.01'].map((id) => ({ id, set: [], learningRate: 0.01 })),
    baseline: 'grpo-at-0.01',
  };
  /** GRPO rises to 75 % and falls to 50 %, with norms that grow. Dr. MAS rises by 10 points and falls by 25. */
  const curves: Results = {
    isStale: () => false,
    of: (job: Job) => {
      const run = fakeTrain(job, 0.5);
      const { solver } = run.agents;
      if (solver === undefined) throw new Error('no agent');
      const isOwn = job.variant.id.startsWith('drmas');
      const scores = isOwn ? [0.25, 0.35, 0.1] : [0.25, 0.75, 0.5];
      return {
        ...run,
        curve: scores.map((team, i) => ({ step: 10 * i, team })),
        agents: { solver: { ...solver, norms: Array.from({ length: 30 }, (_, i) => (isOwn || i < 25 ? 1 : 20)) } },
      };
    },
  };
  const of = new PartResults(high, curves);

  it('tells runs that fell from runs that never rose, and tests the signs of their pairs', () => {
    expect(collapseTable([of]).split('\n')[2]).toBe(
      '| `repair` at 0.01 | 10 of 10 | 0 of 10 | 50.0 | 0 of 10 | 10 of 10 | 10.0 | .002 | fewer |',
    );
  });

  it('counts spikes by each definition', () => {
    const row = spikesTable([of]).split('\n')[2];
    expect(row).toBe(
      '| `repair` at 0.01 | -5.0 [-5.0, -5.0] | -5.0 [-5.0, -5.0] | -5.0 [-5.0, -5.0] | 0.05 [0.05, 0.05] |',
    );
    const counts = (norms: readonly number[]) => Object.values(SPIKES).map((count) => count(norms));
    const calm = Array.from({ length: 20 }, () => 0.2);
    expect(counts([...calm, 0.9])).toEqual([0, 0, 0]); // below the clipping norm, and 4.5 times the first steps
    expect(counts([...calm, 1.1])).toEqual([1, 0, 1]);
    expect(counts([11, ...calm])).toEqual([0, 1, 0]);
  });

  it('draws the mean norm of each variant by step', () => {
    const [grpo, drmas] = normsFigure(of).series;
    expect(grpo?.points.slice(24, 26)).toEqual([
      { x: 25, y: 1 },
      { x: 26, y: 20 },
    ]);
    expect(drmas?.points).toHaveLength(30);
  });
});
