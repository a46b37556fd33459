/** The settings of a recipe, found in its schema, so that a test covers a new one on the day it is written. */
import { z } from 'zod';
import { settingsSchema } from '../../src/method/recipe/recipe-schema.js';
import { standard } from '../../src/runs/composition/standard.js';

/** A setting that is a number, a word, a switch, or the `type` of a union's member. */
export interface Setting {
  /** Its dotted path. */
  readonly path: string;
  /** The overrides that choose the members of unions on the way to it, such as `advantage.type=gigpo`. */
  readonly chosen: readonly string[];
  /** Numbers of different sizes that the schema accepts, or all words. */
  readonly values: readonly (number | string)[];
}

const CANDIDATES = [0, 1, 2, 0.5, 0.1, 3, 1e-3, 8, 1e-9, 0.99, 100];

/** A name for records of numbers by name: the weights of parts of a reward. */
const PART = 'style';

/** The settings with a number. @param assign The policy of each agent */
export const numericSettings = (assign: Readonly<Record<string, string>>): Setting[] =>
  settingsOf(assign, (schema) =>
    schema instanceof z.ZodNumber ? CANDIDATES.filter((value) => schema.safeParse(value).success) : [],
  );

/** The settings with a few words, switches and members of unions. @param assign The policy of each agent */
export const wordSettings = (assign: Readonly<Record<string, string>>): Setting[] =>
  settingsOf(assign, (schema) => {
    if (schema instanceof z.ZodEnum) return schema.options;
    if (schema instanceof z.ZodBoolean) return ['false', 'true'];
    return schema instanceof z.ZodUnion ? schema.options.flatMap((option) => typeOf(option) ?? []) : [];
  });

function settingsOf(assign: Readonly<Record<string, string>>, valuesOf: ValuesOf): Setting[] {
  const policies = [...new Set(Object.values(assign))];
  return leavesOf(settingsSchema(standard, Object.keys(assign), policies, assign), '', [], valuesOf);
}

type ValuesOf = (schema: unknown) => Setting['values'];

function leavesOf(schema: unknown, path: string, chosen: readonly string[], valuesOf: ValuesOf): Setting[] {
  const below = (key: string) => (path === '' ? key : `${path}.${key}`);
  const values = valuesOf(schema);
  const own = { path: schema instanceof z.ZodUnion ? below('type') : path, chosen, values };
  return [...(values.length > 1 ? [own] : []), ...inner()];

  function inner(): Setting[] {
    const into = (node: unknown, at = path, choice = chosen) => leavesOf(node, at, choice, valuesOf);
    if (
      schema instanceof z.ZodOptional ||
      schema instanceof z.ZodDefault ||
      schema instanceof z.ZodPrefault ||
      schema instanceof z.ZodReadonly
    )
      return into(schema.def.innerType);
    if (schema instanceof z.ZodPipe) return into(schema.def.in);
    if (schema instanceof z.ZodRecord) return into(schema.def.valueType, below(PART));
    if (schema instanceof z.ZodUnion)
      return schema.options.flatMap((option) => {
        const type = typeOf(option);
        return into(option, path, type === undefined ? chosen : [...chosen, `${below('type')}=${type}`]);
      });
    if (schema instanceof z.ZodObject)
      return Object.entries(schema.shape).flatMap(([key, node]) => into(node, below(key)));
    return [];
  }
}

/** The name of a union's member. */
const typeOf = (option: unknown): string | undefined =>
  option instanceof z.ZodObject ? literalOf(option.shape.type) : undefined;

const literalOf = (schema: unknown): string | undefined =>
  schema instanceof z.ZodLiteral
    ? String(schema.value)
    : schema instanceof z.ZodDefault || schema instanceof z.ZodOptional
      ? literalOf(schema.def.innerType)
      : undefined;
