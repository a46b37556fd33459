import { ArgumentError, isObject } from '@drmas/engine/errors';
import { z } from 'zod';

/** A schema of a library that follows [Standard Schema](https://standardschema.dev): zod, ArkType, Valibot, others. */
export interface StandardSchema<Value = unknown> {
  readonly '~standard': {
    readonly version: 1;
    readonly vendor: string;
    readonly validate: (value: unknown) => SchemaResult<Value> | Promise<SchemaResult<Value>>;
  };
}

/** A schema's answer about a value: the value as the schema reads it, or its faults. */
export type SchemaResult<Value> =
  | { readonly value: Value; readonly issues?: undefined }
  | {
      readonly issues: readonly {
        readonly message: string;
        readonly path?: readonly (PropertyKey | { readonly key: PropertyKey })[] | undefined;
      }[];
    };

/** Schemas of ArkType are functions. */
export const isStandardSchema = (value: unknown): value is StandardSchema => {
  const standard = isObject(value) || typeof value === 'function' ? Reflect.get(value, '~standard') : undefined;
  return isObject(standard) && typeof standard.validate === 'function';
};

/** The reason why a value is not a schema, if it is none. */
export function schemaProblem(value: unknown): string | undefined {
  if (isStandardSchema(value)) return undefined;
  const inside = isObject(value) && '_def' in value ? value._def : undefined;
  return isObject(inside) && 'typeName' in inside
    ? 'expected a schema of zod 4, got one of zod 3: npm install zod@4 (or import { z } from "zod/v4")'
    : 'expected a schema of zod, or of another library that follows Standard Schema';
}

/**
 * The schema as one of zod. Parsing with it throws an ArgumentError if the schema answers with a promise: nothing here
 * waits for one.
 */
export function asZod<Value>(schema: StandardSchema<Value>): z.ZodType<Value> {
  if (schema instanceof z.ZodType) return schema as z.ZodType<Value>;
  const standard = schema['~standard'];
  return z.unknown().transform((input, context) => {
    const checked = standard.validate(input);
    if ('then' in checked) {
      checked.then(undefined, () => {}); // it may reject, and nobody waits for it
      throw new ArgumentError(`the schema of ${standard.vendor} checks asynchronously; expected one without promises`);
    }
    if (!checked.issues) return checked.value; // some libraries write null
    for (const { message, path = [] } of checked.issues) {
      const keys = path.map((step) => (typeof step === 'object' ? step.key : step));
      context.addIssue({ code: 'custom', message, path: keys });
    }
    return z.NEVER;
  });
}
