/** JSON of the values that a team's code returns, which may be anything. */
import { messageOf } from './errors.js';

/** The JSON of a value that a team returned; for a value that cannot be read, a text with the reason. */
export function jsonText(value: unknown): string | undefined {
  return stringify(readable(value));
}

/** The value, or a text with the reason if it cannot be read. */
export function readable(value: unknown): unknown {
  try {
    stringify(value);
    return value;
  } catch (error) {
    return `[cannot be written as JSON: ${messageOf(error)}]`;
  }
}

/** Writes a value as JSON. Big integers, functions, symbols and circular references, which JSON lacks, become text. */
export function stringify(value: unknown): string | undefined {
  const ancestors: unknown[] = [];
  return JSON.stringify(value, function (this: unknown, _key, inner: unknown) {
    if (typeof inner === 'bigint' || typeof inner === 'function' || typeof inner === 'symbol') return String(inner);
    if (typeof inner !== 'object' || inner === null) return inner;
    while (ancestors.length > 0 && ancestors.at(-1) !== this) ancestors.pop();
    if (ancestors.includes(inner)) return '[circular]';
    ancestors.push(inner);
    return inner;
  });
}
