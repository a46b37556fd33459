/** The width of texts in a terminal, where an East Asian character or an emoji takes two columns. */

const NARROW = /^[ -~]*$/;
/** East Asian characters of two columns (Unicode Standard Annex 11), and emoji. */
const WIDE =
  /[\u1100-\u115f\u2e80-\ua4cf\uac00-\ud7a3\uf900-\ufaff\ufe30-\ufe6f\uff01-\uff60\uffe0-\uffe6\u{20000}-\u{3fffd}]|\p{Emoji_Presentation}|\ufe0f/u;

/** A letter with its accents is one character, and so is an emoji of several code points. */
const characters = new Intl.Segmenter(undefined, { granularity: 'grapheme' });

const columnsOf = (character: string) => (WIDE.test(character) ? 2 : 1);

/** The number of columns that a line takes. */
export function columns(line: string): number {
  if (NARROW.test(line)) return line.length;
  let sum = 0;
  for (const { segment } of characters.segment(line)) sum += columnsOf(segment);
  return sum;
}

/** The most code units of a column. Only letters with heaps of accents have more; they may be cut. */
const UNITS = 16;

/** The longest beginning of a line that takes at most `width` columns. It cuts no character in two. */
export function beginning(line: string, width: number): string {
  const start = line.slice(0, UNITS * width + 1); // the rest of a long line costs nothing
  if (NARROW.test(start.slice(0, width + 1))) return start.slice(0, width);
  let sum = 0;
  for (const { segment, index } of characters.segment(start)) {
    sum += columnsOf(segment);
    if (sum > width) return start.slice(0, index);
  }
  return start;
}

const room = (text: string, width: number) => ' '.repeat(Math.max(0, width - columns(text)));

/** The text with spaces behind it, up to `width` columns. */
export const leftAligned = (text: string, width: number): string => text + room(text, width);

/** The text with spaces before it, up to `width` columns. */
export const rightAligned = (text: string, width: number): string => room(text, width) + text;
