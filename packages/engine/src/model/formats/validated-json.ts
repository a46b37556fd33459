import type { z } from 'zod';
import { CheckpointError, DEEPEST, issuesText, messageOf, nestsTooDeep } from '../../errors.js';
import type { Files } from '../../host.js';

/**
 * Validates a value of a file. `key` is its place in the file.
 * @throws CheckpointError naming the file and every key that is wrong
 */
export function parseWith<T>(schema: z.ZodType<T>, value: unknown, file: string, key?: string): T {
  const parsed = schema.safeParse(value);
  if (parsed.success) return parsed.data;
  const issues = parsed.error.issues.map(({ path, message }) => ({
    path: key === undefined ? path : [key, ...path],
    message,
  }));
  throw new CheckpointError(`${file}: ${issuesText(issues)}`);
}

/** Texts, which stay as they are, and the numbers of Python that JSON has not. */
const PYTHON_NUMBERS = /"(?:[^"\\]|\\.)*"|-?Infinity|NaN/g;

/**
 * The text with Python's infinities as numbers that are read as infinite, and its NaN as a text, which no reader of a
 * number takes.
 */
const withoutPythonNumbers = (text: string): string =>
  text.replace(PYTHON_NUMBERS, (part) => (part === 'NaN' ? '"NaN"' : part.replace(/^(-?)Infinity$/, '$11e999')));

/**
 * Parses a file's text, in which Python may have written `Infinity` and `NaN`.
 * @throws CheckpointError naming the file when the text is not JSON, or nested too deep
 */
export function parseJson(text: string, file: string): unknown {
  if (nestsTooDeep(text)) throw new CheckpointError(`${file}: expected values nested at most ${DEEPEST} deep`);
  try {
    return JSON.parse(withoutPythonNumbers(text));
  } catch (error) {
    throw new CheckpointError(`${file}: not valid JSON: ${messageOf(error)}`);
  }
}

/**
 * Whether a file or directory exists at `path`. @throws CheckpointError naming the path when that cannot be determined
 */
export function isThere(files: Files, path: string): Promise<boolean> {
  return readOrRefuse(path, () => files.exists(path));
}

/** Reads `path` with the given function. @throws CheckpointError naming the path when that fails */
export async function readOrRefuse<T>(path: string, read: () => Promise<T>): Promise<T> {
  try {
    return await read();
  } catch (error) {
    throw new CheckpointError(`${path}: cannot be read: ${messageOf(error)}`);
  }
}
