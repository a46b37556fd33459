import { RandomStream } from '@drmas/engine/math';
import type { Split, Task, TaskSource } from '@drmas/engine/nouns';
import { z } from 'zod';
import { checkedOptions } from '../checked-options.js';
import { isHeldOut } from '../split.js';
import type { ArithmeticOptions } from '../task-options.js';
import { type Chain, chainQuestion, drawChain, result, twoDigits } from './arithmetic-chain.js';
import { type DemonstrationSettings, demonstration } from './arithmetic-traces.js';

const share = z.number().min(0).max(1);
const operationRange = z
  .tuple([z.int().min(1).max(8), z.int().min(1).max(8)])
  .refine(([low, high]) => low <= high, 'expected [fewest, most]');

export const arithmeticSettings = z.strictObject({
  operations: operationRange.default([4, 6]).describe('The fewest and the most operations of a task.'),
  warmStartOperations: operationRange
    .default([3, 6])
    .describe(
      'The fewest and the most operations of a demonstration: easier chains belong to learning how to calculate.',
    ),
  top: z.int().min(9).max(99).default(29).describe('The largest total that a chain may reach.'),
  seed: z.int().min(0).default(0).describe('The seed of the tasks, not of the demonstrations.'),
  demonstrations: z
    .strictObject({
      solver: share
        .default(0.75)
        .describe('The share of demonstrations that show the solver; the rest show the verifier.'),
      worked: share.default(0.5).describe("The share of the solver's demonstrations that show their work."),
      second: share.default(0.15).describe("The share of the solver's demonstrations that try to be a second attempt."),
      corrupted: share
        .default(0.5)
        .describe('The share of drafts shown to the verifier that were written with errors.'),
      lineErrors: share.default(0.4).describe('The share of the lines of such a draft that go wrong.'),
    } satisfies Record<keyof DemonstrationSettings, z.ZodType>)
    .prefault({})
    .describe("The content of the warm start's demonstrations."),
});

/** A task of `arithmetic`: a chain of operations and its last total. */
export interface ArithmeticTask {
  /** `16a+8b-3c-4d-7`: start at 16, step a: add 8, step b: take 3 away ... */
  readonly question: string;
  /** Always two digits. */
  readonly answer: string;
}

/** All symbols of this family's texts, for a model with one token for each. */
export const arithmeticSymbols = [
  ...[
    '<pad>',
    '<end>',
    '<solver>',
    '<verifier>',
    '<ask>',
    '\\boxed{',
    '}',
    '<approve>',
    '<reject>',
    '=',
    '+',
    '-',
    '*',
  ],
  ...'0123456789abcdefgh',
] as const;

const HELD_OUT_SHARE = 0.1;

/**
 * Pocket-calculator chains, read strictly from left to right, every total in 0..top. `trace` demonstrates a solver and
 * a verifier: the solver's answers are all correct (the demonstrators merely disagree about showing their work), and
 * every verdict is true.
 *
 * @throws RecipeError naming the setting that is wrong.
 *
 * @example
 * ```ts
 * import { arithmetic } from 'drmas';
 *
 * const tasks = arithmetic({ operations: [1, 2], top: 19 });
 * ```
 */
export function arithmetic(options: ArithmeticOptions = {}): TaskSource<ArithmeticTask> {
  const settings = checkedOptions('arithmetic', arithmeticSettings, options);

  const draw = (random: RandomStream, split: Split, [low, high]: readonly [number, number]): Chain => {
    for (;;) {
      const chain = drawChain(random, random.integer(low, high), settings.top);
      if (isHeldOut(chainQuestion(chain), HELD_OUT_SHARE) === (split === 'test')) return chain;
    }
  };

  return {
    name: 'arithmetic',
    settings,
    configure: (changed) => arithmetic(changed as ArithmeticOptions),
    load: async (split) => ({
      name: `arithmetic ${split}`,
      size: Number.POSITIVE_INFINITY,
      at: (index) =>
        taskOf(draw(new RandomStream('arithmetic', settings.seed, split, index), split, settings.operations)),
    }),
    trace: (random, split) =>
      demonstration(random, settings.demonstrations, settings.top, () =>
        draw(random, split, settings.warmStartOperations),
      ),
  };
}

function taskOf(chain: Chain): Task<ArithmeticTask> {
  const question = chainQuestion(chain);
  return {
    id: question,
    data: { question, answer: twoDigits(result(chain)) },
    metadata: { operations: chain.steps.length },
  };
}
