/** Schemas of users: a check that a value is one, and a parser made from one. */
import { z } from 'zod';
import { isObject } from '../../base/errors.js';
import type { Parser } from './parsers.js';

/** The reason why a value is not a schema; undefined if it is one. */
export function schemaProblem(value: unknown): string | undefined {
  if (value instanceof z.ZodType) return undefined;
  const inside = isObject(value) && '_def' in value ? value._def : undefined;
  if (isObject(inside) && 'typeName' in inside)
    return 'expected a schema of zod 4, got one of zod 3: npm install zod@4 (or import { z } from "zod/v4")';
  return 'expected a zod schema';
}

/** The text in a fence of three backquotes, with or without the word json. */
const FENCE = /^```(?:json)?[ \t]*\n([\s\S]*?)\n?```[ \t]*$/gim;

/**
 * The JSON value of a reply if the schema accepts it. The reply must be only JSON, or have exactly one fenced block
 * with JSON. Nothing is repaired: text that does not parse or does not fit is invalid.
 */
export function jsonParser<Value>(schema: z.ZodType<Value>): Parser<Value> {
  return (text) => {
    const fences = [...text.matchAll(FENCE)];
    const source = fences.length === 1 ? (fences[0]?.[1] ?? '') : text;
    let value: unknown;
    try {
      value = JSON.parse(source);
    } catch {
      return undefined;
    }
    const checked = schema.safeParse(value);
    return checked.success ? checked.data : undefined;
  };
}
