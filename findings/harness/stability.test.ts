import { describe, expect, it } from 'vitest';
import { type Job, jobsOf } from './declaration.js';
import { fakePart, fakeTrain } from './fake-results.js';
import { pairedRegimes, stabilityCounts, stabilityTable } from './stability.js';
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
