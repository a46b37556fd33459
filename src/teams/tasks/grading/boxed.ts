/**
 * The content of the last `\boxed{...}` with balanced braces; `null` if there is none, or if the last `\boxed` has no
 * brace after it or is never closed (a truncated answer does not count). Braces count even behind a backslash, and
 * `\fbox` is not an answer, as in the Dr. MAS code.
 *
 * @example
 * ```ts
 * import { extractBoxed } from 'drmas';
 *
 * extractBoxed('so it is \\boxed{17}'); // '17'
 * ```
 */
export function extractBoxed(text: string | null | undefined): string | null {
  const start = text?.lastIndexOf('\\boxed') ?? -1;
  if (typeof text !== 'string' || start < 0) return null;
  const open = start + '\\boxed'.length;
  if (text[open] !== '{') return null;
  let depth = 0;
  for (let i = open; i < text.length; i++) {
    if (text[i] === '{') depth++;
    else if (text[i] === '}' && --depth === 0) return text.slice(open + 1, i);
  }
  return null;
}
