import { describe, expect, it } from 'vitest';
import { golden } from '../../../../test/goldens.js';
import type { TrainingSample } from '../base/core/sample.js';
import { whiten } from '../base/core/statistics.js';
import { createReferenceKernels } from '../tensor/reference/reference.js';
import { aggregateLoss, aggregationWeights, normalizerOfRows } from './aggregate.js';
import { entropyBonus } from './entropy.js';
import { type KlKind, klEstimator, klPenalty } from './kl.js';
import type { Aggregation } from './loss-settings.js';
import type { LossSpec } from './loss-spec.js';
import { objectiveOf } from './objective/objective.js';
import { policyLoss } from './policy-loss.js';
import { valueLoss } from './value-loss.js';

type Rows = number[][];
interface Params {
  clip: number;
  clipLow: number | null;
  clipHigh: number | null;
  dualClip: number;
  aggregation: Aggregation;
}
interface PolicyCase {
  params: Params;
  oldLogprobs: Rows;
  logprobs: Rows;
  advantages: Rows;
  mask: Rows;
  loss: number;
  clipFraction?: number;
  approxKl?: number;
  clipFractionLower?: number;
  gradLogprobs: Rows;
}

// The originals add 1e-8 to token counts.
const near = 1e-7;
const cases = <Case>(name: string) => golden<{ cases: Case[] }>(`losses/${name}`).cases;

function expectRows(actual: Rows, expected: Rows, tolerance = near) {
  expect(actual.map((row) => row.length)).toEqual(expected.map((row) => row.length));
  const difference = Math.max(
    ...expected.flatMap((row, r) => row.map((value, t) => Math.abs(value - (actual[r]?.[t] ?? Number.NaN)))),
  );
  expect(difference).toBeLessThan(tolerance);
}

function specOf({ clip, clipLow, clipHigh, dualClip, aggregation }: Params): LossSpec {
  const bounds = { clipLow: clipLow ?? undefined, clipHigh: clipHigh ?? undefined };
  return { type: 'ppo-clip', clip, ...bounds, dualClip, aggregate: aggregation };
}

function check(golden: PolicyCase, spec: LossSpec) {
  const { loss, gradient, metrics } = policyLoss({ ...golden, behaviourLogprobs: golden.oldLogprobs }, spec);
  expect(Math.abs(loss - golden.loss)).toBeLessThan(near);
  expectRows(gradient, golden.gradLogprobs);
  for (const name of ['clipFraction', 'clipFractionLower', 'approxKl'] as const) {
    if (golden[name] !== undefined) expect(Math.abs((metrics[name] ?? Number.NaN) - golden[name])).toBeLessThan(near);
  }
}

describe('losses agree with the originals', () => {
  it('PPO clip, dual clip, every aggregation', () => {
    for (const one of cases<PolicyCase>('policy')) check(one, specOf(one.params));
  });

  it('CISPO', () => {
    for (const one of cases<PolicyCase>('cispo_formula')) {
      const { clipLow, clipHigh, aggregation } = one.params;
      check(one, { type: 'cispo', clipLow: clipLow ?? 0, clipHigh: clipHigh ?? 0, aggregate: aggregation });
    }
  });

  it('GSPO', () => {
    for (const one of cases<PolicyCase>('gspo_formula')) {
      const { clipLow, clipHigh } = one.params;
      check(one, { type: 'gspo', clipLow: clipLow ?? 0, clipHigh: clipHigh ?? 0 });
    }
  });

  it('aggregations', () => {
    type Case = { matrix: Rows; mask: Rows; expected: Record<Aggregation, number> };
    for (const { matrix, mask, expected } of cases<Case>('aggregate')) {
      for (const [aggregation, value] of Object.entries(expected) as [Aggregation, number][]) {
        expect(Math.abs(aggregateLoss(matrix, mask, aggregation) - value)).toBeLessThan(near);
      }
    }
  });

  it('KL penalties', () => {
    type Expected = { perToken: Rows; tokenMean: number; gradLogprobs: Rows };
    type Case = { logprobs: Rows; refLogprobs: Rows; mask: Rows; expected: Record<KlKind, Expected> };
    for (const { logprobs, refLogprobs, mask, expected } of cases<Case>('kl')) {
      const weights = aggregationWeights(mask, 'token-mean');
      for (const [kind, oracle] of Object.entries(expected) as [KlKind, Expected][]) {
        const perToken = klPenalty(logprobs, refLogprobs, kind);
        expectRows(perToken, oracle.perToken);
        expect(Math.abs(aggregateLoss(perToken, mask, 'token-mean') - oracle.tokenMean)).toBeLessThan(near);
        const { derivative } = klEstimator(kind);
        const slope = (logprob: number, r: number, t: number) => derivative(logprob - (refLogprobs[r]?.[t] ?? 0));
        const weighted = logprobs.map((row, r) => row.map((each, t) => slope(each, r, t) * (weights[r]?.[t] ?? 0)));
        expectRows(weighted, oracle.gradLogprobs);
      }
    }
  });

  it('entropy', () => {
    type Case = { params: Params; logits: number[][][]; mask: Rows; perToken: Rows; loss: number; gradLogits: Rows[] };
    for (const { params, logits, mask, ...oracle } of cases<Case>('entropy')) {
      const { loss, perToken, gradient } = entropyBonus({ logits, mask }, { aggregate: params.aggregation });
      expect(Math.abs(loss - oracle.loss)).toBeLessThan(near);
      expectRows(perToken, oracle.perToken);
      expectRows(gradient.flat(), oracle.gradLogits.flat());
    }
  });

  it('clipped value loss', () => {
    type Case = { params: Params; gradValues: Rows; loss: number; clipFraction: number };
    type Input = Case & { values: Rows; oldValues: Rows; returns: Rows; mask: Rows };
    for (const one of cases<Input>('value')) {
      const options = { clip: one.params.clip, aggregate: one.params.aggregation };
      const { loss, gradient, metrics } = valueLoss(one, options);
      expect(Math.abs(loss - one.loss)).toBeLessThan(near);
      expect(Math.abs(metrics.clipFraction - one.clipFraction)).toBeLessThan(near);
      expectRows(gradient, one.gradValues);
    }
  });

  it('whitening', () => {
    for (const { values, mask, expected } of cases<{ values: Rows; mask: Rows; expected: Rows }>('whiten')) {
      expectRows(whiten(values, mask), expected);
    }
  });

  it('policy loss - entropy bonus + KL, down to the logits at a temperature, as an update computes them', () => {
    type Coefficients = { entropyCoef: number; klCoef: number; klKind: KlKind; temperature: number };
    type Case = {
      params: Params & Coefficients;
      logits: number[][][];
      labels: Rows;
      oldLogprobs: Rows;
      refLogprobs: Rows;
      advantages: Rows;
      mask: Rows;
      loss: number;
      gradLogits: number[][][];
    };
    const kernels = createReferenceKernels();
    for (const one of cases<Case>('combined')) {
      const { entropyCoef, klCoef, klKind, temperature } = one.params;
      const loss = specOf(one.params);
      // A prompt of one token that nothing predicts; entry t of a row then belongs to token t + 1.
      const shifted = (row: readonly number[]) => Float32Array.from([0, ...row]);
      const samples = one.mask.map((mask, r): TrainingSample => {
        const labels = one.labels[r] ?? [];
        return {
          tokens: Int32Array.from([0, ...labels]),
          mask: Uint8Array.from([0, ...mask]),
          behaviourLogprobs: shifted(one.oldLogprobs[r] ?? []),
          referenceLogprobs: shifted(one.refLogprobs[r] ?? []),
          advantages: shifted(one.advantages[r] ?? []),
          temperature,
          policyVersion: 0,
          agent: `row ${r}`,
        };
      });
      const objective = objectiveOf(samples, {
        loss,
        normalizer: normalizerOfRows(one.params.aggregation, one.mask),
        kl: { kind: klKind, coefficient: klCoef },
        entropyCoefficient: entropyCoef,
      });
      const sums = objective.begin(() => []);
      objective.samples.forEach((sample, i) => {
        const r = Number(sample.agent.slice('row '.length));
        const rows = one.logits[r] ?? [];
        const [count, vocabSize] = [rows.length, rows[0]?.length ?? 0];
        const logits = Float32Array.from(rows.flat());
        const [logprobs, normaliser, entropy] = [0, 0, 0].map(() => new Float32Array(count)) as [
          Float32Array,
          Float32Array,
          Float32Array,
        ];
        const targets = sample.tokens.slice(1);
        const inverse = new Float32Array(count).fill(1 / temperature);
        kernels.tokenLogprobs({
          logprobs,
          logSumExp: normaliser,
          entropy,
          logits,
          targets,
          inverseTemperature: inverse,
          rows: count,
          vocabSize,
        });
        const dLogprobs = sums.gradient(i, shifted([...logprobs])).slice(1);
        const dEntropy = sums.entropyGradient?.(i, shifted([...entropy])).slice(1) ?? new Float32Array(count);
        kernels.tokenEntropyBackward({
          logits,
          dLogprobs,
          dEntropy,
          logSumExp: normaliser,
          entropy,
          targets,
          inverseTemperature: inverse,
          rows: count,
          vocabSize,
        });
        expectRows([[...logits]], [(one.gradLogits[r] ?? []).flat()], 2e-6);
      });
      expect(Math.abs(sums.result().loss - one.loss)).toBeLessThan(2e-6);
    }
  });
});
