import type { TrainingSample } from '@drmas/engine/nouns';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { sampleOf } from '../../../../test/support/samples.js';
import { stepsOf, temporaryRoot, tinyRecipe, trainTiny } from '../../../../test/support/tiny-run.js';
import type { Learner } from '../run/learner.js';
import { UpdateCounts } from './update-counts.js';
import { agreementOf, objectiveOptions, updatePolicy } from './update-policy.js';

const batch = [sampleOf([1, 2, 3], [1, 1, 1]), sampleOf([1], [0], { agent: 'verifier' })];
const normalizersOf = (aggregate: string) => {
  const { loss, policies, agents } = tinyRecipe({}, [
    `loss.aggregate=${aggregate}`,
    'agents.solver.sampling.maxTokens=7',
    'agents.verifier.sampling.maxTokens=5',
  ]);
  const settings = policies.solver;
  return ['solver', 'verifier'].map(
    (agent) => objectiveOptions({ loss, settings, agents } as Learner, batch, agent).normalizer,
  );
};

it('divides by the whole mini-batch, and with seq-mean-token-sum-norm by the longest response that each agent may give', () => {
  expect(normalizersOf('token-mean')).toEqual([4, 4]);
  expect(normalizersOf('seq-mean-token-sum')).toEqual([2, 2]);
  expect(normalizersOf('seq-mean-token-sum-norm')).toEqual([2 * 7, 2 * 5]);
});

const root = temporaryRoot();

describe('an entropy bonus', () => {
  /** The coefficients of the updates of four steps. */
  async function coefficientsOf(...overrides: string[]) {
    const { loss, policies, agents } = tinyRecipe({}, ['policies.solver.entropyCoefficient=8', ...overrides]);
    const coefficients: unknown[] = [];
    const handle = {
      async forwardBackward(_: unknown, { entropyCoefficient }: { readonly entropyCoefficient?: number }) {
        coefficients.push(entropyCoefficient);
        return { gradientNorm: 1, loss: 0, tokens: 1, metrics: {} };
      },
      optimStep: async () => ({ norm: 1, stepped: true }),
      publish: async () => {},
    };
    const learner = {
      name: 'solver',
      handle,
      capabilities: {},
      settings: policies.solver,
      loss,
      agents,
    } as unknown as Learner;
    const options = {
      made: new UpdateCounts().before(1),
      kl: new Map(),
      watch: { skipAboveNorm: () => undefined },
      keepRatios: false,
      versions: 1,
    };
    for (const step of [1, 2, 3, 4])
      await updatePolicy(learner, { seed: 1, step, steps: 4 }, [batch[0] as TrainingSample], options as never);
    return coefficients;
  }

  it('stays, or falls with the updates of the run, whatever the learning rate does', async () => {
    expect(await coefficientsOf()).toEqual([8, 8, 8, 8]);
    const linear = 'policies.solver.entropySchedule.type=linear';
    const falling = await coefficientsOf(linear, 'policies.solver.warmupSteps=3');
    [8, 16 / 3, 8 / 3, 0].forEach((coefficient, i) => {
      expect(falling[i]).toBeCloseTo(coefficient, 12);
    });
    const early = ['updates=2', 'finalFraction=0.25'].map((each) => `policies.solver.entropySchedule.${each}`);
    expect(await coefficientsOf(linear, ...early)).toEqual([8, 2, 2, 2]);
  });
});

describe('the rise of the learning rate', () => {
  /** The rates of two steps with four updates each, of which some are left out. */
  async function ratesOf(leftOut: readonly number[]) {
    const { loss, policies, agents } = tinyRecipe({}, [
      ...['optimizer.learningRate=8', 'warmupSteps=8', 'epochs=2', 'miniBatches=2'].map(
        (each) => `policies.solver.${each}`,
      ),
    ]);
    const rates: number[] = [];
    const handle = {
      forwardBackward: async () => ({ gradientNorm: 1, loss: 0, tokens: 1, metrics: {} }),
      async optimStep({ optimizer }: { readonly optimizer: { readonly learningRate: number } }) {
        const left = leftOut.includes(rates.push(optimizer.learningRate));
        return left ? { applied: false, why: 'above-limit', norm: 1 } : { applied: true, norm: 1 };
      },
      publish: async () => {},
    };
    const learner = { name: 'solver', handle, capabilities: {}, settings: policies.solver, loss, agents };
    const made = new UpdateCounts();
    const options = { kl: new Map(), watch: { skipAboveNorm: () => undefined }, keepRatios: false, versions: 1 };
    const samples = [batch[0], batch[0]] as TrainingSample[];
    for (const step of [1, 2])
      await updatePolicy(learner as unknown as Learner, { seed: 1, step, steps: 2 }, samples, {
        ...options,
        made: made.before(step),
      } as never);
    return rates;
  }

  it('goes on where it was after updates that were left out, within a step and in the next', async () => {
    expect(await ratesOf([])).toEqual([1, 2, 3, 4, 5, 6, 7, 8]);
    expect(await ratesOf([2, 3])).toEqual([1, 2, 2, 2, 3, 4, 5, 6]);
    expect(await ratesOf([1, 2, 3, 4])).toEqual([1, 1, 1, 1, 1, 2, 3, 4]);
    expect(await ratesOf([4, 8])).toEqual([1, 2, 3, 4, 4, 5, 6, 7]);
  });
});

type Vector = readonly number[];
const dot = (a: Vector, b: Vector) => a.reduce((sum, value, i) => sum + value * (b[i] as number), 0);
const norm = (a: Vector) => Math.sqrt(dot(a, a));
const updateOf = (...vectors: Vector[]) => ({
  gradients: vectors.map((vector) => ({ result: { gradientNorm: norm(vector) } })),
  optimStep: { norm: norm(vectors.reduce((sum, vector) => sum.map((value, i) => value + (vector[i] as number)))) },
});
const vector = fc
  .array(fc.double({ min: -1, max: 1, noNaN: true }), { minLength: 4, maxLength: 4 })
  .filter((v) => norm(v) > 0.1);

describe('the agreement of agents that share a policy', () => {
  it('is the cosine of the gradients of two, from their norms alone', () => {
    fc.assert(
      fc.property(vector, vector, (a, b) => {
        expect(agreementOf([updateOf(a, b)])).toBeCloseTo(dot(a, b) / norm(a) / norm(b), 8);
      }),
    );
    expect(agreementOf([updateOf([3, 0], [0, 4])])).toBe(0);
    expect(agreementOf([updateOf([1, 2], [-2, -4])])).toBeCloseTo(-1, 12);
  });

  it('is the mean over all pairs, weighted by their norms, of three', () => {
    fc.assert(
      fc.property(vector, vector, vector, (a, b, c) => {
        const pairs = [
          [a, b],
          [a, c],
          [b, c],
        ] as [Vector, Vector][];
        const weight = ([x, y]: [Vector, Vector]) => norm(x) * norm(y);
        const sum = (of: (pair: [Vector, Vector]) => number) => pairs.reduce((total, pair) => total + of(pair), 0);
        expect(agreementOf([updateOf(a, b, c)])).toBeCloseTo(sum(([x, y]) => dot(x, y)) / sum(weight), 8);
      }),
    );
  });

  it('is averaged over the updates of a step, and absent if it is not known', () => {
    expect(agreementOf([updateOf([1, 0], [1, 0]), updateOf([1, 0], [0, 1])])).toBeCloseTo(0.5, 12);
    expect(agreementOf([updateOf([1, 0])])).toBeUndefined();
    expect(agreementOf([updateOf([1, 0], [0, 0])])).toBeUndefined();
    const { optimStep } = updateOf([1, 0], [1, 0]);
    expect(agreementOf([{ gradients: [{ result: {} }, { result: {} }], optimStep }])).toBeUndefined();
    expect(agreementOf([{ ...updateOf([1, 0], [1, 0]), optimStep: { norm: Number.NaN } }])).toBeUndefined();
  });

  it('is recorded only for agents that share a policy', async () => {
    const brief = ['training.steps=2', 'evaluation.tasks=1'];
    const agreements = async (changes: Parameters<typeof tinyRecipe>[0]) =>
      (await stepsOf(await trainTiny(root, tinyRecipe(changes, brief)))).map(({ agents, policies }) => {
        const { solver, verifier } = agents;
        const norms = [solver, verifier].map((agent) => agent?.gradientNorm ?? 0) as [number, number];
        return { recorded: [solver?.agreement, verifier?.agreement], norms, whole: policies.shared?.gradientNorm ?? 0 };
      });
    for (const { recorded, norms, whole } of await agreements({ assign: 'shared' })) {
      const [cosine] = recorded as [number, number];
      expect(recorded).toEqual([cosine, cosine]);
      expect(Math.abs(cosine)).toBeLessThanOrEqual(1);
      const [a, b] = norms;
      expect(a ** 2 + b ** 2 + 2 * a * b * cosine).toBeCloseTo(whole ** 2, 8); // the law of cosines
    }
    for (const { recorded } of await agreements({})) expect(recorded).toEqual([undefined, undefined]);
  });
});
