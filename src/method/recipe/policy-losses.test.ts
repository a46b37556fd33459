import { describe, expect, it } from 'vitest';
import { tinyRecipe } from '../../../test/support/tiny-run.js';
import { lossOf, lossPath } from './policy-losses.js';

describe('the losses of a recipe', () => {
  it('are one loss for all policies, or a policy has a complete loss of its own', () => {
    const recipe = tinyRecipe({ policies: { verifier: { loss: { type: 'turn-ppo', clip: 0.1 } } } }, ['loss.clip=0.3']);
    expect(lossOf(recipe, 'solver')).toEqual({ type: 'ppo-clip', clip: 0.3, aggregate: 'token-mean' });
    const loss = { type: 'turn-ppo', clip: 0.1, aggregate: 'seq-mean-token-mean' };
    expect(lossOf(recipe, 'verifier')).toEqual(loss);
    expect(['solver', 'verifier'].map((policy) => lossPath(recipe, policy))).toEqual([
      'loss',
      'policies.verifier.loss',
    ]);
  });

  it.each(['ppo-clip', 'turn-ppo', 's-ppo', 'st-ppo', 'cispo', 'gspo'])('fill in the correction of %s', (type) => {
    const recipe = tinyRecipe({}, [`loss.type=${type}`, 'loss.importanceCorrection={}']);
    const correction = { cap: 2, beyond: 'truncate', level: 'token' };
    expect(recipe.loss).toMatchObject({ type, importanceCorrection: correction });
  });

  it.each([
    [['loss={"type":"gspo","dualClip":3}'], /^loss.dualClip: unknown key/],
    [['loss={"type":"gspo","aggregate":"token-mean"}'], /^loss.aggregate: unknown key/],
    [['loss={"type":"cross-entropy","importanceCorrection":{}}'], /^loss.importanceCorrection: unknown key/],
    [['loss.importanceCorrection={"cap":0}'], /^loss.importanceCorrection.cap/],
    [['loss.clipLow=1'], /^loss.clipLow/],
    [
      ['loss={"type":"cross-entropy"}'],
      /^loss.type: 'cross-entropy' weighs .* 'drmas' has negative ones; .*'rejection'/,
    ],
    [['policies.verifier.loss={"type":"cross-entropy"}'], /^policies.verifier.loss.type: 'cross-entropy'/],
  ])('%o is refused with its path', (overrides, message) => {
    expect(() => tinyRecipe({}, overrides)).toThrow(message);
  });

  it('accept cross-entropy together with rejection', () => {
    const recipe = tinyRecipe({}, ['advantage={"type":"rejection","keep":"best"}', 'loss={"type":"cross-entropy"}']);
    expect(recipe).toMatchObject({
      advantage: { type: 'rejection', keep: 'best', above: 0, episodeScore: 'mean' },
      loss: { type: 'cross-entropy', aggregate: 'token-mean' },
    });
  });
});
