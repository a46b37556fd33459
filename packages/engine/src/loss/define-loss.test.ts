/** The checks of a declaration. The laws of losses stand in test/loss-laws.test.ts. */
import { describe, expect, it } from 'vitest';
import { z } from 'zod';
import { ArgumentError } from '../base/core/errors.js';
import { defineLoss } from './define-loss.js';

describe('defineLoss', () => {
  const parts = {
    type: 'mine',
    schema: { beta: z.number() },
    source: 'this test',
    formula: '-A log p',
    use: 'in tests',
    ratio: 'token',
    gradientOf: 'logprob',
    aggregate: 'token-mean',
    token: () => () => {},
  } as const;

  it.each([
    [{ type: '' }, 'type is "", expected a name'],
    [{ schema: null }, "'mine' has no schema, expected its settings"],
    [{ ratio: 'tokens' }, `'mine' has the ratio "tokens", expected one of token, turn, sequence, product`],
    [{ gradientOf: 'logit' }, `'mine' has gradientOf "logit", expected 'ratio' or 'logprob'`],
    [{ ratio: 'turn' }, "'mine' has gradientOf 'logprob' with the ratio 'turn', expected the ratio 'token'"],
    [{ aggregate: undefined }, "'mine' has the aggregate undefined, expected one of token-mean,"],
    [{ aggregate: 'mean' }, `'mine' has the aggregate "mean", expected one of token-mean,`],
    [{ token: 'x' }, `'mine' has the token "x", expected a function`],
    [{ prepare: 1 }, "'mine' has the prepare 1, expected a function"],
    [{ metrics: { z: 2 } }, "'mine' has the z 2, expected a function"],
    [{ metrics: { entropy: () => 0 } }, "'mine' has the metric 'entropy', which every loss has; expected another name"],
  ])('refuses %o', (changes, message) => {
    const declare = () => defineLoss({ ...parts, ...changes } as unknown as typeof parts);
    expect(declare).toThrow(ArgumentError);
    expect(declare).toThrow(`defineLoss: ${message}`);
  });
});
