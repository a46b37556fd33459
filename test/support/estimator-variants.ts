/** Estimators with their choices made in every way, and turns to compare with them, for the laws of advantages. */

import type { TurnRecord } from '@drmas/engine/nouns';
import fc from 'fast-check';
import { expect } from 'vitest';
import { z } from 'zod';
import { settingsSchema } from '../../src/method/advantage/named-choices.js';
import { type Estimator, estimateAdvantages } from '../../src/runs/composition/estimate-advantages.js';
import { standard } from '../../src/runs/composition/standard.js';

function bare(choice: z.core.$ZodType): z.core.$ZodType {
  const wraps = choice instanceof z.ZodOptional || choice instanceof z.ZodDefault || choice instanceof z.ZodReadonly;
  return wraps ? bare(choice.def.innerType) : choice;
}

/** The values that a law is tried with, in addition to the default. */
function valuesOf(choice: z.core.$ZodType): readonly unknown[] {
  if (choice instanceof z.ZodEnum) return choice.options;
  if (choice instanceof z.ZodBoolean) return [false, true];
  if (choice instanceof z.ZodNumber) return [0, 0.5].filter((value) => choice.safeParse(value).success);
  if (choice instanceof z.ZodArray) return [[], ['solver']]; // agents
  if (choice instanceof z.ZodRecord) return [{}, { format: 0.5 }]; // weights of parts
  throw new TypeError(`the laws do not know how to vary a choice of type ${choice._zod.def.type}`);
}

/**
 * Every combination of an estimator's words and switches, each with its numbers as they are by default and moved one by
 * one. The choices that many estimators share have their defaults.
 */
export const variants: readonly Estimator[] = standard.estimators.flatMap(({ schema, type }) => {
  const choices = Object.entries(schema.shape)
    .filter(([name]) => name !== 'type' && !(name in settingsSchema.shape))
    .map(([name, choice]) => [name, bare(choice)] as const);
  const numbers = choices.filter(([, choice]) => choice instanceof z.ZodNumber);
  const words = choices.filter(([, choice]) => !(choice instanceof z.ZodNumber));
  const combinations = words.reduce<Record<string, unknown>[]>(
    (sofar, [name, choice]) => sofar.flatMap((one) => valuesOf(choice).map((value) => ({ ...one, [name]: value }))),
    [{ type }],
  );
  const moved = numbers.flatMap(([name, choice]) =>
    combinations.flatMap((one) => valuesOf(choice).map((value) => ({ ...one, [name]: value }))),
  );
  return [...combinations, ...moved].map((one) => schema.parse(one) as Estimator);
});

/**
 * The variants with another value of a choice that many estimators share. Each value is tried with some variants of its
 * estimator.
 */
export const sharedVariants: readonly Estimator[] = standard.estimators.flatMap(({ schema, type }) => {
  const { singleton, episodeScore, shareStatistics }: Readonly<Record<string, z.core.$ZodType>> = schema.shape;
  const changes = [
    ...(singleton === undefined ? [] : valuesOf(bare(singleton)).map((value) => ({ singleton: value }))),
    ...(episodeScore === undefined ? [] : valuesOf(bare(episodeScore)).map((value) => ({ episodeScore: value }))),
    ...(shareStatistics === undefined ? [] : [{ shareStatistics: [['solver', 'critic']] }]),
  ];
  const own = variants.filter((variant) => variant.type === type);
  const count = changes.length === 0 ? 0 : Math.max(own.length, changes.length);
  return Array.from(
    { length: count },
    (_, i) => schema.parse({ ...own[i % own.length], ...changes[i % changes.length] }) as Estimator,
  );
});

export const reward = fc.integer({ min: -40, max: 40 }).map((n) => n / 10);

/**
 * Tasks of two to five episodes; agents act as often as they like, and every turn has all that an estimator may need.
 */
export const turns: fc.Arbitrary<TurnRecord[]> = fc
  .array(
    fc.record({
      task: fc.constantFrom('a', 'b', 'c'),
      episode: fc.integer({ min: 0, max: 4 }).map((n) => `e${n}`),
      agent: fc.constantFrom('solver', 'critic'),
      reward,
      stepReward: reward,
      agentStepReward: reward,
      baseline: reward,
      parts: fc.dictionary(fc.constantFrom('correct', 'format'), reward),
      observation: fc.constantFrom('here', 'there'),
      chain: fc.constantFrom(0, 0, 1),
      values: fc.array(reward, { minLength: 1, maxLength: 3 }),
    }),
    { minLength: 2, maxLength: 40 },
  )
  .map((rows) => {
    const played = new Map<string, number>();
    const records = rows.map((row) => {
      const name = `${row.task} ${row.episode}`;
      const turn = played.get(name) ?? 0;
      played.set(name, turn + 1);
      return { ...row, turn, envStep: turn, length: row.values.length };
    });
    const episodes = (task: string) =>
      new Set(records.filter((one) => one.task === task).map(({ episode }) => episode));
    return records.filter(({ task }) => episodes(task).size > 1);
  });

/** Advantages token by token, for estimators that give more than one number per turn. */
export const flat = (records: readonly TurnRecord[], estimator: Estimator) =>
  estimateAdvantages(records, estimator).flat();

/** The turns without rewards of steps, which only some estimators read. */
export const plain = (records: readonly TurnRecord[]) =>
  records.map(({ stepReward: _, agentStepReward: __, ...record }) => record);

/** Each number is near the expected number. The tolerance is relative to sizes above 1. */
export function expectClose(actual: readonly number[], expected: readonly number[], tolerance: number) {
  if (actual.length !== expected.length) expect(actual).toHaveLength(expected.length);
  const far = actual.flatMap((value, i) => {
    const target = expected[i] ?? Number.NaN;
    return Math.abs(value - target) <= tolerance * Math.max(1, Math.abs(target)) ? [] : [{ i, value, target }];
  });
  if (far.length > 0) expect(far).toEqual([]); // an assertion that holds takes longer than the comparison
}

/** Named parts whose sum depends on their order if they are large. */
const partsOf = (size: number) => ({ correct: 0.3 * size, format: 0.1 * size, style: 0.7 * size });

/** Two tasks of episodes that went alike and earned about this much, with all that an estimator may need. */
export function equalEpisodes(size: number, episodes: number): TurnRecord[] {
  const parts = partsOf(size);
  const reward = Object.values(parts).reduce((sum, part) => sum + part, 0);
  return ['a', 'b'].flatMap((task) =>
    Array.from({ length: episodes }, (_, e) =>
      ['solver', 'critic', 'solver'].map((agent, turn) => ({
        task,
        episode: `e${e}`,
        agent,
        turn,
        envStep: turn,
        reward,
        parts,
        outcome: reward,
        stepReward: turn === 2 ? reward : 0,
        agentStepReward: turn > 0 ? reward : 0,
        baseline: reward,
        observation: 'abc'.charAt(turn).repeat(9),
        length: 2,
        values: [reward, reward],
      })),
    ).flat(),
  );
}
