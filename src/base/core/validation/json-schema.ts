import { z } from 'zod';
import type { JsonSchema } from '../message.js';
import { nestsTooDeep } from './nesting.js';

const checks = new WeakMap<JsonSchema, z.ZodType>();

/** Whether a text is JSON that fits a schema. If a schema has keywords that zod does not know, any JSON fits. */
export function fitsJsonSchema(text: string, schema: JsonSchema): boolean {
  if (nestsTooDeep(text)) return false;
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch {
    return false;
  }
  const check = checks.get(schema) ?? checkOf(schema);
  checks.set(schema, check);
  return check.safeParse(value).success;
}

function checkOf(schema: JsonSchema): z.ZodType {
  try {
    return z.fromJSONSchema(schema);
  } catch {
    return z.json();
  }
}
