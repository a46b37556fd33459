/** Characters of JSON by their codes. */
export const [QUOTE, BACKSLASH] = [0x22, 0x5c];
export const [OPEN_LIST, CLOSE_LIST, OPEN_OBJECT, CLOSE_OBJECT] = [0x5b, 0x5d, 0x7b, 0x7d];

/** The deepest nesting of values in files. Functions walk through values by recursion, and the stack has a limit. */
export const DEEPEST = 500;

/** Whether arrays and objects are nested deeper than `DEEPEST` in a text of JSON. */
export function nestsTooDeep(text: string): boolean {
  if (text.length < 2 * DEEPEST) return false;
  let depth = 0;
  let inString = false;
  for (let at = 0; at < text.length; at++) {
    const character = text.charCodeAt(at);
    if (inString) {
      if (character === BACKSLASH) at++;
      else if (character === QUOTE) inString = false;
    } else if (character === QUOTE) inString = true;
    else if (character === OPEN_LIST || character === OPEN_OBJECT) {
      if (++depth > DEEPEST) return true;
    } else if (character === CLOSE_LIST || character === CLOSE_OBJECT) depth--;
  }
  return false;
}
