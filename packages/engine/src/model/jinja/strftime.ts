/** `datetime.strftime` of Python in the locale C, for a time without a zone. */

const DAYS = ['Sunday', 'Monday', 'Tuesday', 'Wednesday', 'Thursday', 'Friday', 'Saturday'];
const MONTHS = [
  ...['January', 'February', 'March', 'April', 'May', 'June'],
  ...['July', 'August', 'September', 'October', 'November', 'December'],
];
const DAY = 86_400_000;

const two = (value: number, fill = '0') => String(value).padStart(2, fill);
const hour12 = (date: Date) => date.getHours() % 12 || 12;
/** Days since 1 January, from 0. */
const dayOfYear = (date: Date) =>
  Math.round(
    (Date.UTC(date.getFullYear(), date.getMonth(), date.getDate()) - Date.UTC(date.getFullYear(), 0, 1)) / DAY,
  );
/** The day of the week, Monday is 1 and Sunday is 7. */
const isoDay = (date: Date) => date.getDay() || 7;

/** The year and the week of ISO 8601. */
function isoWeek(date: Date): readonly [year: number, week: number] {
  const thursday = new Date(date.getFullYear(), date.getMonth(), date.getDate() + 4 - isoDay(date));
  return [thursday.getFullYear(), Math.floor(dayOfYear(thursday) / 7) + 1];
}

const codes: Readonly<Record<string, (date: Date) => string>> = {
  a: (date) => (DAYS[date.getDay()] ?? '').slice(0, 3),
  A: (date) => DAYS[date.getDay()] ?? '',
  b: (date) => (MONTHS[date.getMonth()] ?? '').slice(0, 3),
  B: (date) => MONTHS[date.getMonth()] ?? '',
  c: (date) => strftime('%a %b %e %H:%M:%S %Y', date),
  C: (date) => two(Math.floor(date.getFullYear() / 100)),
  d: (date) => two(date.getDate()),
  D: (date) => strftime('%m/%d/%y', date),
  e: (date) => two(date.getDate(), ' '),
  f: (date) => `${String(date.getMilliseconds()).padStart(3, '0')}000`,
  F: (date) => strftime('%Y-%m-%d', date),
  g: (date) => two(isoWeek(date)[0] % 100),
  G: (date) => String(isoWeek(date)[0]),
  h: (date) => strftime('%b', date),
  H: (date) => two(date.getHours()),
  I: (date) => two(hour12(date)),
  j: (date) => String(dayOfYear(date) + 1).padStart(3, '0'),
  k: (date) => two(date.getHours(), ' '),
  l: (date) => two(hour12(date), ' '),
  m: (date) => two(date.getMonth() + 1),
  M: (date) => two(date.getMinutes()),
  n: () => '\n',
  p: (date) => (date.getHours() < 12 ? 'AM' : 'PM'),
  P: (date) => (date.getHours() < 12 ? 'am' : 'pm'),
  r: (date) => strftime('%I:%M:%S %p', date),
  R: (date) => strftime('%H:%M', date),
  s: (date) => String(Math.floor(date.getTime() / 1000)),
  S: (date) => two(date.getSeconds()),
  t: () => '\t',
  T: (date) => strftime('%H:%M:%S', date),
  u: (date) => String(isoDay(date)),
  U: (date) => two(Math.floor((dayOfYear(date) + 7 - date.getDay()) / 7)),
  V: (date) => two(isoWeek(date)[1]),
  w: (date) => String(date.getDay()),
  W: (date) => two(Math.floor((dayOfYear(date) + 8 - isoDay(date)) / 7)),
  x: (date) => strftime('%m/%d/%y', date),
  X: (date) => strftime('%H:%M:%S', date),
  y: (date) => two(date.getFullYear() % 100),
  Y: (date) => String(date.getFullYear()),
  z: () => '',
  Z: () => '',
  '%': () => '%',
};

/** A code has flags and a width of the GNU library: `%-d` is a day without its zero. */
const CODE = /%([-_0^#]*)(\d{0,2})([EO]?)([a-zA-Z%])/g;

/** A date in a format; a code that Python's C library does not know stays as it is. */
export function strftime(format: string, date: Date): string {
  return format.replace(CODE, (all, flags: string, width: string, _alternative: string, letter: string) => {
    const plain = codes[letter]?.(date);
    if (plain === undefined) return all;
    let text = plain;
    const isNumeric = /^[ 0]*\d+$/.test(text);
    if (flags.includes('-') && isNumeric) text = text.replace(/^[ 0]+(?=\d)/, '');
    if (flags.includes('_') && isNumeric) text = text.replace(/^0+(?=\d)/, (zeros) => ' '.repeat(zeros.length));
    if (flags.includes('0') && isNumeric) text = text.replaceAll(' ', '0');
    if (flags.includes('^')) text = text.toUpperCase();
    if (flags.includes('#')) text = letter === 'p' ? text.toLowerCase() : text.toUpperCase();
    if (width === '') return text;
    const fill = (isNumeric && !flags.includes('_')) || flags.includes('0') ? '0' : ' ';
    return text.padStart(Number(width), fill);
  });
}
