/** Made-up results, for the tests of their analysis. */
import { type Job, jobName, jobsOf, PAIRS, type Part } from './declaration.js';
import {
  type ProbeResult,
  type Results,
  repeatableCommand,
  type StoredResult,
  type TrainResult,
} from './stored-result.js';

const origin = { commit: 'abc', drmas: '0.0.0', node: '20.0.0', seconds: 1 };

/** A part with a regime for each dose, which is also the inflation that probes predict there. */
export function fakePart({ id = 'made-up', doses = [2], variants = ['grpo', 'drmas'], seeds = PAIRS } = {}): Part {
  return {
    id,
    title: 'A made-up part',
    regimes: doses.map((value) => ({
      id: `dose-${value}`,
      recipe: 'math',
      set: [],
      policies: ['solver'],
      learningRate: 1e-3,
      agent: 'solver',
      score: 'team',
      dose: { label: `dose ${value}`, value },
    })),
    variants: variants.map((type) => ({ id: type, set: [`advantage.type=${type}`] })),
    baseline: variants[0] ?? 'grpo',
    seeds,
    figure: 'dose',
    probe: true,
  };
}

export function fakeTrain(job: Job, score: number): TrainResult {
  return {
    kind: 'train',
    command: repeatableCommand(job),
    kernels: 'native avx2',
    evaluated: { tasks: 64, samples: 8 },
    curve: [
      { step: 0, team: 0.25 },
      { step: 100, team: score },
    ],
    reward: score,
    agents: {
      solver: { turns: 9, invalid: 0.1, norm: 1, maxNorm: 2, spikes: 0, inflation: 1.5, maxAbsAdvantage: 3 },
    },
    origin,
  };
}

export function fakeProbe(job: Job): ProbeResult {
  const inflation = job.regime.dose?.value ?? 1;
  return {
    kind: 'probe',
    command: repeatableCommand(job),
    success: 0.75,
    agents: { solver: { callsPerEpisode: 1, reward: 0.25, rewardStd: 0.5, inflation, ownShare: 0.8 / inflation } },
    origin,
  };
}

const fakeResult = (job: Job, value: number): StoredResult =>
  job.kind === 'probe'
    ? fakeProbe(job)
    : job.kind === 'overlap'
      ? { kind: 'overlap', command: repeatableCommand(job), overlap: value, origin }
      : fakeTrain(job, value);

/** Results of all jobs of a part, with these last scores or overlaps; a job whose value is undefined has none. */
export function fakeResults(part: Part, score: (job: Job) => number | undefined): Results {
  const stored = new Map(
    jobsOf(part).flatMap((job): [string, StoredResult][] => {
      const last = score(job);
      return last === undefined ? [] : [[jobName(job), fakeResult(job, last)]];
    }),
  );
  return { of: (job) => stored.get(jobName(job)), isStale: () => false };
}
