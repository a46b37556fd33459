/** A choice changes the advantages, or the estimator says that it has no effect beside the others. */

import { RandomStream } from '@drmas/engine/math';
import type { TurnRecord } from '@drmas/engine/nouns';
import { describe, expect, it } from 'vitest';
import { z } from 'zod';
import { standard } from '../../runs/composition/standard.js';
import type { EstimatorDeclaration } from './define-estimator.js';
import { TurnBatch } from './turn-batch.js';

const bare = (choice: unknown): unknown =>
  choice instanceof z.ZodOptional || choice instanceof z.ZodDefault || choice instanceof z.ZodReadonly
    ? bare(choice.def.innerType)
    : choice;

/** Values of a choice that lie apart. */
function valuesOf(choice: unknown): readonly unknown[] {
  if (choice instanceof z.ZodEnum) return choice.options;
  if (choice instanceof z.ZodBoolean) return [false, true];
  if (choice instanceof z.ZodNumber)
    return [0, 1e-3, 0.5, 0.9, 1, 2].filter((value) => choice.safeParse(value).success);
  if (choice instanceof z.ZodRecord) return [{}, { format: 0.5 }];
  const agents = [[], ['solver'], [['solver', 'critic']]];
  if (choice instanceof z.ZodArray) return agents.filter((value) => choice.safeParse(value).success);
  throw new TypeError('this test does not know how to vary such a choice');
}

/** A step of tasks with one to four episodes, in which two agents act at once or one after the other, or seldom. */
function stepOf(seed: number): TurnRecord[] {
  const random = new RandomStream('choices', seed);
  const number = () => Math.round(40 * random.uniform() - 20) / 10;
  const tasks = ['a', 'b', 'c', 'd', 'e'];
  return tasks.flatMap((task, t) =>
    Array.from({ length: t === 0 ? 1 : 2 + random.integer(0, 2) }, (_, e) => {
      const outcome = number();
      return Array.from({ length: 1 + random.integer(0, 5) }, (_, turn) => ({
        task,
        episode: `${e}`,
        agent: random.uniform() < 0.6 ? 'solver' : 'critic',
        turn,
        envStep: turn >> 1,
        chain: turn >> 2,
        reward: number(),
        outcome,
        stepReward: number(),
        agentStepReward: number(),
        baseline: number(),
        parts: { correct: number(), format: number() },
        observation: random.uniform() < 0.5 ? 'a narrow road' : 'a narrow roof',
        length: 2,
        values: [number(), number()],
      }));
    }).flat(),
  );
}
/** Steps, each with a turn that is alone in its task and the only one of its agent. */
const steps = Array.from({ length: 6 }, (_, seed) => {
  const alone = { task: 'alone', agent: 'rare', episode: '0' };
  const played = stepOf(seed);
  return new TurnBatch([...played, { ...(played[0] as TurnRecord), ...alone }]);
});

/** The advantages of two steps in a row, so that statistics of earlier steps count too. */
function advantagesOf({ open }: EstimatorDeclaration, choices: object): string {
  const estimator = open(choices);
  const before = steps.map((batch) => estimator.advance(batch, {}));
  return JSON.stringify(steps.map((batch, i) => Array.from(estimator.compute(batch, before.at(i - 1)))));
}

const shared = ['singleton', 'episodeScore', 'shareStatistics', 'epsilon', 'minimumSpread'];

/** The choices of an estimator other than the shared ones: all words in all ways, and each number once at 0. */
function contextsOf(choices: readonly (readonly [string, unknown])[]): Record<string, unknown>[] {
  const own = choices.filter(([name]) => !shared.includes(name));
  const words = own
    .filter(([, choice]) => !(choice instanceof z.ZodNumber))
    .reduce<Record<string, unknown>[]>(
      (sofar, [name, choice]) => sofar.flatMap((one) => valuesOf(choice).map((value) => ({ ...one, [name]: value }))),
      [{}],
    );
  const zeros = own.filter(([, choice]) => choice instanceof z.ZodNumber && choice.safeParse(0).success);
  return [...words, ...zeros.flatMap(([name]) => words.map((context) => ({ ...context, [name]: 0 })))];
}

describe('each choice has an effect, or the estimator says that it has none', () => {
  const computed = standard.estimators.filter(({ type }) => type !== 'counterfactual'); // its choice is about playing
  it.each(computed)('$type', (declaration) => {
    const { type, schema } = declaration;
    const choices = Object.entries(schema.shape)
      .filter(([name]) => name !== 'type')
      .map(([name, choice]) => [name, bare(choice)] as const);
    const contexts = contextsOf(choices);
    const sample = contexts.filter((_, i) => i % Math.ceil(contexts.length / 16) === 0); // a partition has 360
    for (const context of sample)
      for (const [name, choice] of choices) {
        if (name in context) continue;
        const tried = valuesOf(choice).map((value) => ({ type, ...context, [name]: value }));
        const effect = new Set(tried.map((one) => advantagesOf(declaration, one))).size > 1;
        const said = tried.some((one) => declaration.open(one).unused.includes(name));
        expect({ ...context, name, effect }).toEqual({ ...context, name, effect: !said });
      }
  });
});
