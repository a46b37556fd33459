/** Numbers and texts as people read them. */

/** The text of a number that was not measured. */
const NOT_MEASURED = '-';

/** A time as `0.7 s`, `42 s`, `3:05 min` or `2:10 h`. */
export function duration(seconds: number): string {
  if (!Number.isFinite(seconds)) return NOT_MEASURED;
  if (seconds < 10) return `${seconds.toFixed(1)} s`;
  const whole = Math.round(seconds);
  if (whole < 60) return `${whole} s`;
  const pad = (value: number) => String(value).padStart(2, '0');
  if (whole < 3600) return `${Math.floor(whole / 60)}:${pad(whole % 60)} min`;
  return `${Math.floor(whole / 3600)}:${pad(Math.floor((whole % 3600) / 60))} h`;
}

/** A fraction as `62.4 %`, with `digits` digits behind the point. */
export const percent = (fraction: number, digits = 1): string =>
  Number.isNaN(fraction) ? NOT_MEASURED : `${fixed(100 * fraction, digits)} %`;

/** A number with `digits` digits behind the point. */
export const fixed = (value: number, digits: number): string =>
  Number.isFinite(value) ? value.toFixed(digits) : significant(value);

const thousands = new Intl.NumberFormat('en-US', { maximumFractionDigits: 0 });

/** A count as `150,720`. */
export const grouped = (count: number): string => (Number.isNaN(count) ? NOT_MEASURED : thousands.format(count));

/** A count as `950`, `38k` or `4.1M`. */
export function short(count: number): string {
  if (Number.isNaN(count)) return NOT_MEASURED;
  if (count < 1000) return String(Math.round(count));
  if (count < 1e6) return `${(count / 1000).toFixed(count < 1e4 ? 1 : 0)}k`;
  return `${(count / 1e6).toFixed(1)}M`;
}

/** A number with about three significant digits, without an exponent in the usual range. */
export function significant(value: number | null): string {
  if (value === null || Number.isNaN(value)) return NOT_MEASURED;
  if (!Number.isFinite(value)) return value > 0 ? 'inf' : '-inf';
  if (value === 0) return '0';
  const size = Math.abs(value);
  if (size >= 1e5 || size < 1e-4) return value.toExponential(1);
  return size >= 100 ? value.toFixed(0) : size >= 10 ? value.toFixed(1) : value.toFixed(size >= 0.1 ? 2 : 4);
}

/** Control characters other than the line feed, also those that turn the direction of the text behind them. */
// biome-ignore lint/suspicious/noControlCharactersInRegex: the pattern matches control characters to replace them
const CONTROLS = /[\u0000-\u0009\u000b-\u001f\u007f-\u009f\u2028\u2029\u202a-\u202e\u2066-\u2069]/g;

/** A model's text, safe to print in a terminal: a dot replaces each control character other than a line feed. */
export function visible(text: string): string {
  return text.replaceAll(CONTROLS, '\u00b7');
}

/** The beginning of a text on one line, at most `longest` characters; error messages quote it. */
export function excerpt(text: string, longest = 80): string {
  const line = text
    .trimStart()
    .slice(0, 10 * longest)
    .trimEnd()
    .replace(/\s+/g, ' ');
  return line.length > longest ? `${line.slice(0, longest - 1)}…` : line;
}

/** A size as `512 B`, `12.3 MB` or `1.2 GB`. */
export function byteText(bytes: number): string {
  if (bytes < 1e3) return `${Math.round(bytes)} B`;
  const [unit, size] = bytes < 1e6 ? ['kB', 1e3] : bytes < 1e9 ? ['MB', 1e6] : ['GB', 1e9];
  return `${(bytes / size).toFixed(1)} ${unit}`;
}

/**
 * A word, quoted for a POSIX shell if necessary. `printf` writes its control characters, so that none of them reaches
 * the terminal that shows the command.
 */
export const shellWord = (word: string): string =>
  /^[\w@%+=:,./-]+$/.test(word) ? word : `'${word.replaceAll("'", "'\\''").replaceAll(CONTROLS, printed)}'`;

const printed = (character: string) =>
  `'"$(printf '${[...new TextEncoder().encode(character)].map((byte) => `\\${byte.toString(8).padStart(3, '0')}`).join('')}')"'`;
