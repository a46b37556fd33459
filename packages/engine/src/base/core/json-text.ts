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
  return written(value, (inner) => inner);
}

/**
 * The text of a value by which two values are told apart: as JSON, but Maps, Sets, regular expressions, errors and
 * numbers that are not finite are written too, which JSON leaves empty. Undefined if the value cannot be read.
 */
export function contentText(value: unknown): string | undefined {
  const known = new Map<unknown, unknown>();
  const once = (inner: unknown) => {
    if (!known.has(inner)) known.set(inner, withContent(inner));
    return known.get(inner);
  };
  try {
    return written(value, (inner) => (typeof inner === 'object' ? once(inner) : withContent(inner)));
  } catch {
    return undefined;
  }
}

function withContent(inner: unknown): unknown {
  if (typeof inner === 'number') return Number.isFinite(inner) ? inner : `${inner}`;
  if (inner instanceof Map) return { Map: [...inner] };
  if (inner instanceof Set) return { Set: [...inner] };
  if (inner instanceof RegExp) return { RegExp: String(inner) };
  if (inner instanceof ArrayBuffer) return { ArrayBuffer: [...new Uint8Array(inner)] };
  if (inner instanceof DataView)
    return { DataView: [...new Uint8Array(inner.buffer, inner.byteOffset, inner.byteLength)] };
  if (inner instanceof BigInt) return String(inner);
  if (inner instanceof URLSearchParams) return { URLSearchParams: String(inner) };
  if (inner instanceof Error) return { ...inner, name: inner.name, message: inner.message };
  return inner;
}

function written(value: unknown, of: (inner: unknown) => unknown): string | undefined {
  const ancestors: unknown[] = [];
  return JSON.stringify(value, function (this: unknown, _key, given: unknown) {
    const inner = of(given);
    if (typeof inner === 'bigint' || typeof inner === 'function' || typeof inner === 'symbol') return String(inner);
    if (typeof inner !== 'object' || inner === null) return inner;
    while (ancestors.length > 0 && ancestors.at(-1) !== this) ancestors.pop();
    if (ancestors.includes(inner)) return '[circular]';
    ancestors.push(inner);
    return inner;
  });
}
