import { nestsTooDeep } from '../../core/validation/nesting.js';
import { isObject } from '../../core/validation/objects.js';

/** The value of a JSON text; `undefined` where it is none, or nested deeper than any call. */
export function jsonValue(text: string): unknown {
  if (nestsTooDeep(text)) return undefined;
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

/** The object of a JSON text; `undefined` where it is none. */
export function jsonObject(text: string): Record<string, unknown> | undefined {
  const value = jsonValue(text);
  return isObject(value) ? value : undefined;
}
