/** The numeric settings of a recipe, found in its schema, so that a test covers a new one on the day it is written. */
import { z } from 'zod';
import { settingsSchema } from '../../src/method/recipe/recipe-schema.js';
import { standard } from '../../src/runs/composition/standard.js';

/** A setting with a number. */
export interface NumericSetting {
  /** Its dotted path. */
  readonly path: string;
  /** The overrides that choose the members of unions on the way to it, such as `advantage.type=gigpo`. */
  readonly chosen: readonly string[];
  /** Values of different sizes that the schema accepts. */
  readonly values: readonly number[];
}

const CANDIDATES = [0, 1, 2, 0.5, 0.1, 3, 1e-3, 8, 1e-9, 0.99, 100];

/** A name for records of numbers by name: the weights of parts of a reward. */
const PART = 'style';

/** @param assign The policy of each agent */
export function numericSettings(assign: Readonly<Record<string, string>>): NumericSetting[] {
  const policies = [...new Set(Object.values(assign))];
  return leavesOf(settingsSchema(standard, Object.keys(assign), policies, assign), '', []);
}

function leavesOf(schema: unknown, path: string, chosen: readonly string[]): NumericSetting[] {
  const below = (key: string) => (path === '' ? key : `${path}.${key}`);
  if (schema instanceof z.ZodNumber)
    return [{ path, chosen, values: CANDIDATES.filter((value) => schema.safeParse(value).success) }];
  if (
    schema instanceof z.ZodOptional ||
    schema instanceof z.ZodDefault ||
    schema instanceof z.ZodPrefault ||
    schema instanceof z.ZodReadonly
  )
    return leavesOf(schema.def.innerType, path, chosen);
  if (schema instanceof z.ZodPipe) return leavesOf(schema.def.in, path, chosen);
  if (schema instanceof z.ZodRecord) return leavesOf(schema.def.valueType, below(PART), chosen);
  if (schema instanceof z.ZodUnion)
    return schema.options.flatMap((option) => {
      const type = option instanceof z.ZodObject ? literalOf(option.shape.type) : undefined;
      const choice = type === undefined ? [] : [`${below('type')}=${type}`];
      return leavesOf(option, path, [...chosen, ...choice]);
    });
  if (schema instanceof z.ZodObject)
    return Object.entries(schema.shape).flatMap(([key, inner]) => leavesOf(inner, below(key), chosen));
  return [];
}

const literalOf = (schema: unknown): string | undefined =>
  schema instanceof z.ZodLiteral
    ? String(schema.value)
    : schema instanceof z.ZodDefault || schema instanceof z.ZodOptional
      ? literalOf(schema.def.innerType)
      : undefined;
