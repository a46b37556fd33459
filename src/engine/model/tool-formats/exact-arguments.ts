/** JSON in calls, whose numbers keep the digits that a model or a program wrote. */
import { isObject, jsonValue, parseExactly } from '../../../base/errors.js';

/** The value of a JSON text, with numbers whose digits could change as texts; undefined if it is no JSON. */
export const exactValue = (text: string): unknown => (jsonValue(text) === undefined ? undefined : parseExactly(text));

/** The same of an object; undefined for other values. */
export function exactObject(text: string): Record<string, unknown> | undefined {
  return isObject(jsonValue(text)) ? (parseExactly(text) as Record<string, unknown>) : undefined;
}
