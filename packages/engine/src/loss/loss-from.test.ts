import { describe, expect, it } from 'vitest';
import selfNormalised from '../../../../test/fixtures/losses/self-normalised.js';
import { sampleOf } from '../../../../test/support/samples.js';
import { ArgumentError, RecipeError } from '../base/core/errors.js';
import { defineLoss } from './define-loss.js';
import { loadLosses, lossFrom } from './loss-from.js';
import { lossKind, lossNamed } from './loss-spec.js';
import { objectiveOf } from './objective/objective.js';
import { policyLoss } from './policy-loss.js';

const url = 'file:///somewhere/loss.ts';
const extra = [{ declaration: selfNormalised, module: url }];

describe('a loss of a user', () => {
  const rows = {
    logprobs: [[-1, -2], [-1]],
    behaviourLogprobs: [[-1 - Math.log(3), -2], [-1]],
    advantages: [[1, -2], [0]],
    mask: [[1, 1], [1]],
  };

  it('is computed with its constants, which are metrics too', () => {
    const { loss, gradient, metrics } = policyLoss(rows, lossNamed({ type: 'self-normalised', scale: 2 }, extra));
    const mean = (3 + 1 + 1) / 3;
    expect(metrics.meanRatio).toBeCloseTo(mean, 12);
    expect(gradient[0]?.[0]).toBeCloseTo((-2 * 3) / mean / 3, 12);
    expect(gradient[0]?.[1]).toBeCloseTo((2 * 2) / mean / 3, 12);
    expect(gradient[1]).toEqual([0]);
    expect(loss).toBeCloseTo((2 * (3 * 1 - 2 * 2)) / mean / 3, 12);
  });

  it('is computed in parts with the constants of the whole', () => {
    const loss = lossNamed({ type: 'self-normalised' }, extra);
    const whole = policyLoss(rows, loss);
    const options = { normalizer: 3, context: { meanRatio: whole.metrics.meanRatio } };
    const parts = [0, 1].map((r) =>
      policyLoss(
        {
          logprobs: rows.logprobs.slice(r, r + 1),
          behaviourLogprobs: rows.behaviourLogprobs.slice(r, r + 1),
          advantages: rows.advantages.slice(r, r + 1),
          mask: rows.mask.slice(r, r + 1),
        },
        loss,
        options,
      ),
    );
    expect(parts.reduce((sum, part) => sum + part.loss, 0)).toBeCloseTo(whole.loss, 12);
    expect(parts.flatMap(({ gradient }) => gradient)).toEqual(whole.gradient);
  });

  it('asks an objective for the log-probs of all samples first', () => {
    const loss = lossNamed({ type: 'self-normalised' }, extra);
    const objective = objectiveOf([sampleOf([1, 2], [1, -1]), sampleOf([2], [0])], { loss, normalizer: 3 });
    expect([objective.samples.length, objective.needsScores]).toEqual([2, true]);
    expect(lossKind(loss)).toMatchObject({ prepares: true, withoutAdvantage: 'scored', aggregate: 'token-mean' });
  });

  it('is refused with settings that do not fit, and by an unknown name', () => {
    const wrong = () => lossNamed({ type: 'self-normalised', scale: -1 }, extra);
    expect(wrong).toThrow(ArgumentError);
    expect(wrong).toThrow(/^the loss 'self-normalised': scale/);
    expect(() => lossNamed({ type: 'mine' }, extra)).toThrow(
      /^unknown loss "mine"; there are ppo-clip, .*self-normalised/,
    );
    expect(lossNamed({ type: 'gspo', clipLow: 1, clipHigh: 1 }, extra)).toEqual({
      type: 'gspo',
      clipLow: 1,
      clipHigh: 1,
    });
    const unread = { type: 'own', settings: { type: 'self-normalised' }, module: url } as const;
    expect(() => policyLoss(rows, unread)).toThrow("the module of the loss 'self-normalised' has not been imported");
  });
});

describe('lossFrom', () => {
  it('names a module', () => {
    expect(lossFrom(url)).toEqual({ kind: 'loss', module: url });
    expect(lossFrom(url, { type: 'a' })).toEqual({ kind: 'loss', module: url, type: 'a' });
    for (const wrong of ['./loss.ts', '/somewhere/loss.ts', 'https://host/loss.js'])
      expect(() => lossFrom(wrong)).toThrow(/^lossFrom: expected an absolute file URL/);
  });

  const exporting = (exported: Record<string, unknown>) => async () => exported;
  const declare = (type: string, ratio: 'token' = 'token') => {
    const words = { source: 'this test', formula: '0', use: 'in tests' };
    const token = () => () => {};
    return defineLoss({ type, schema: {}, ...words, ratio, gradientOf: 'ratio', aggregate: 'token-mean', token });
  };
  const other = declare('other');
  const builtIn = declare('ppo-clip');

  it('takes all losses of the module, or one of them', async () => {
    const importModule = exporting({ default: other, other, selfNormalised, helper: () => {} });
    expect(await loadLosses(lossFrom(url), importModule)).toEqual([
      { declaration: other, module: url },
      { declaration: selfNormalised, module: url },
    ]);
    expect(await loadLosses(lossFrom(url, { type: 'other' }), importModule)).toHaveLength(1);
  });

  it.each([
    [{ default: { type: 'mine' } }, undefined, 'exports no loss: it needs `export default defineLoss({ ... })`'],
    [{ other, selfNormalised }, 'mine', "has no loss 'mine'; it has other, self-normalised"],
    [{ builtIn }, undefined, "exports a loss 'ppo-clip', a name that another loss has"],
  ])('refuses a module that exports %o', async (exported, type, message) => {
    const loading = loadLosses(lossFrom(url, type === undefined ? {} : { type }), exporting(exported));
    await expect(loading).rejects.toThrow(RecipeError);
    await expect(loading).rejects.toThrow(`use: ${url} ${message}`);
  });

  it('refuses a module that does not load, or breaks the shape of a declaration', async () => {
    const broken = async () => ({ default: declare('other', 'tokens' as 'token') });
    await expect(loadLosses(lossFrom(url), broken)).rejects.toThrow(
      `use: ${url} cannot be loaded: defineLoss: 'other' has the ratio "tokens", expected one of token,`,
    );
  });
});
