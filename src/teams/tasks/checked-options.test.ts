import { expect, it } from 'vitest';
import { z } from 'zod';
import { RecipeError } from '../../base/errors.js';
import { checkedOptions } from './checked-options.js';

const schema = z.strictObject({ seed: z.int().default(7), share: z.number().max(1) });

it('returns the options with their defaults', () => {
  expect(checkedOptions('riddles', schema, { share: 0.5 })).toEqual({ seed: 7, share: 0.5 });
});

it('names the source and each option that is wrong', () => {
  const refused = () => checkedOptions('riddles', schema, { share: 2, sede: 1 });
  expect(refused).toThrow(RecipeError);
  expect(refused).toThrow(/^riddles: .*share/);
  expect(refused).toThrow(/sede/);
});
