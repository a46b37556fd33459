/** Arguments of calls as JSON texts: numbers keep the digits that a model or a program wrote, and keys their order. */
import { compactJson, jsonValue } from '../../errors.js';
import { jsonMembers } from './json-object.js';

/** A text of JSON without white space; undefined if it is no JSON. */
export const exactText = (text: string): string | undefined =>
  jsonValue(text) === undefined ? undefined : compactJson(text);

/** The values of an object's text by name, each as `exactText`; undefined for other texts. */
export function exactMembers(text: string): Map<string, string> | undefined {
  const members = jsonMembers(text);
  return members && new Map([...members].map(([name, value]) => [name, compactJson(value)]));
}

export const objectText = (members: Iterable<readonly [name: string, value: string]>): string =>
  `{${Array.from(members, ([name, value]) => `${JSON.stringify(name)}:${value}`).join(',')}}`;
