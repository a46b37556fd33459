/** Schemas of users: what is one, and a parser that is made of one. */
import { z } from 'zod';
import { isObject } from '../core/validation/objects.js';
import type { Parser } from './parsers.js';

/** What is wrong with a value that should be a schema; undefined where nothing is. */
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
 * The JSON value of a reply, where the schema accepts it. The reply is JSON and nothing else, or has exactly one fenced
 * block, which is. Nothing is mended: what does not parse, or does not fit, is invalid.
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
