/** Reads the JSON files that drmas writes itself. They may come from a later version, from others, or be damaged. */
import type { z } from 'zod';
import { messageOf } from '../errors.js';
import { faultsText } from './explain.js';
import { DEEPEST, isObject, nestsTooDeep } from './objects.js';

interface StoredFile {
  readonly path: string;
  /** The content of the file in words, such as `the record of a run`. */
  readonly what: string;
  /** The latest version of the file that this version of drmas reads. */
  readonly latest?: number;
  /** The error for a file that cannot be used. */
  readonly fault: (message: string) => Error;
}

/** The most wrong fields that a message names. */
const MOST_FAULTS = 3;

/**
 * Parses and validates the text of a stored file.
 * @throws the error of `fault`, with one line: the path, and the fields that are wrong; or that a later version of
 * drmas wrote it
 */
export function parseStored<S extends z.ZodType>(
  schema: S,
  text: string,
  { path, what, latest = 1, fault }: StoredFile,
): z.output<S> {
  const refusal = (why: string) => fault(`${path} is not ${what}: ${why}`);
  if (nestsTooDeep(text)) throw refusal(`it has values nested deeper than ${DEEPEST}`);
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch (error) {
    throw refusal(`it is not JSON (${messageOf(error).replaceAll(/\s*\n\s*/g, ' ')})`);
  }
  const later = laterVersion(value, latest);
  if (later !== undefined) throw fault(`${path} ${later}`);
  const parsed = schema.safeParse(value);
  if (!parsed.success) throw refusal(String(faultOf(schema, value)));
  return parsed.data;
}

/** The first wrong fields of a value on one line; undefined if it fits. */
export const faultOf = (schema: z.ZodType, value: unknown): string | undefined =>
  faultsText(schema, value, MOST_FAULTS);

/** The end of a sentence about a value whose `version` is later than the latest that is read. Else undefined. */
export function laterVersion(value: unknown, latest: number): string | undefined {
  const version = isObject(value) ? value.version : undefined;
  if (typeof version !== 'number' || !Number.isSafeInteger(version) || version <= latest) return undefined;
  return `was written by a later version of drmas (format ${version}, this version reads ${latest}): update drmas with npm install drmas@latest`;
}
