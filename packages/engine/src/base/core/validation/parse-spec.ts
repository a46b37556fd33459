import type { z } from 'zod';
import { ArgumentError } from '../errors.js';

/**
 * Checks a program's choice by `type`, and fills in its defaults.
 * @param name The value's name in messages
 * @throws ArgumentError with the path of the first wrong value, the expected value and the actual one
 */
export function parseSpec<Schema extends z.ZodType>(schema: Schema, value: unknown, name: string): z.output<Schema> {
  const result = schema.safeParse(value, { reportInput: true });
  if (result.success) return result.data;
  const [issue] = result.error.issues;
  const at = [name, ...(issue?.path ?? [])].map(String).join('.');
  if (issue === undefined) throw new ArgumentError(`${at} is not valid`);
  const expected = expectedBy(issue);
  throw new ArgumentError(
    expected === undefined ? `${at}: ${issue.message}` : `${at} must be ${expected}, got ${shown(issue.input)}`,
  );
}

function expectedBy(issue: z.core.$ZodIssue): string | undefined {
  switch (issue.code) {
    case 'invalid_type':
      return `a ${issue.expected}`;
    case 'invalid_value':
      return issue.values.length === 1 ? shown(issue.values[0]) : `one of ${issue.values.map(String).join(', ')}`;
    case 'too_small':
      return `a number ${issue.inclusive === false ? '>' : '>='} ${issue.minimum}`;
    case 'too_big':
      return `a number ${issue.inclusive === false ? '<' : '<='} ${issue.maximum}`;
    default:
      return undefined;
  }
}

const shown = (value: unknown) => (typeof value === 'string' ? JSON.stringify(value) : String(value));
