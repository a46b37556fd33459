import { jsonObject, jsonValue } from '../../errors.js';
import { jsonMembers } from './json-object.js';
import type { WrittenCall } from './tool-format.js';

/**
 * Reads a call that is written as one JSON object. The arguments keep the text that was written.
 * @param keys The names that the arguments may have
 * @param further Keys that the object may also have, with texts as values
 */
export function callOfJson(
  text: string,
  keys: readonly string[],
  further: readonly string[] = [],
): WrittenCall | undefined {
  const members = jsonMembers(text);
  const key = keys.find((each) => members?.has(each));
  if (members === undefined || key === undefined) return undefined;
  for (const name of members.keys()) if (name !== 'name' && name !== key && !further.includes(name)) return undefined;
  for (const name of ['name', ...further])
    if (typeof jsonValue(members.get(name) ?? '""') !== 'string') return undefined;
  const name = String(jsonValue(members.get('name') ?? ''));
  const values = members.get(key) ?? '';
  return members.has('name') && jsonObject(values) !== undefined ? { name, arguments: values } : undefined;
}

/** The text of a call as one JSON object whose arguments have this key. */
export const jsonOfCall = (call: WrittenCall, key: string): string =>
  `{"name": ${JSON.stringify(call.name)}, "${key}": ${call.arguments}}`;

/** The beginning of such an object, up to a token's boundary. */
export const jsonOpening = (name: string | undefined, key: string): string =>
  name === undefined ? '{"name": "' : `{"name": ${JSON.stringify(name)}, "${key}":`;
