import { jsonObject } from '../../errors.js';

const STRING = /"[^"\\]*(?:\\.[^"\\]*)*"/y;

/**
 * The place behind the object or list that begins at a place, by its brackets and strings alone; undefined if it
 * does not end.
 */
export function endOfJson(text: string, start: number): number | undefined {
  let depth = 0;
  for (let at = start; at < text.length; at++) {
    const character = text.charAt(at);
    if (character === '"') {
      STRING.lastIndex = at;
      if (!STRING.test(text)) return undefined;
      at = STRING.lastIndex - 1;
    } else if (character === '{' || character === '[') depth++;
    else if ((character === '}' || character === ']') && --depth === 0) return at + 1;
  }
  return undefined;
}

/** The members of a JSON object by name, each as its written text; undefined if it is no object. */
export function jsonMembers(text: string): Map<string, string> | undefined {
  if (jsonObject(text) === undefined) return undefined;
  const members = new Map<string, string>();
  let at = text.indexOf('{') + 1;
  for (;;) {
    at = skipSpace(text, at);
    if (text.charAt(at) !== '"') return members;
    STRING.lastIndex = at;
    STRING.test(text);
    const name: string = JSON.parse(text.slice(at, STRING.lastIndex));
    const start = skipSpace(text, text.indexOf(':', STRING.lastIndex) + 1);
    const end = endOfMember(text, start);
    members.set(name, text.slice(start, end).trimEnd());
    at = end + 1;
  }
}

/** The place of the next character that is no white space. */
export function skipSpace(text: string, at: number): number {
  while (/\s/.test(text.charAt(at))) at++;
  return at;
}

/** The place of the comma or bracket behind a value. The text is JSON. */
function endOfMember(text: string, start: number): number {
  if ('{['.includes(text.charAt(start))) return skipSpace(text, endOfJson(text, start) ?? text.length);
  STRING.lastIndex = start;
  if (STRING.test(text)) return skipSpace(text, STRING.lastIndex);
  const end = text.slice(start).search(/[,}]/);
  return end < 0 ? text.length : start + end;
}
