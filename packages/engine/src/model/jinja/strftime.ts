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

/** The codes that Python's C library reads behind the modifiers E and O. */
const WITH: Readonly<Record<string, string>> = {
  E: 'cnprstuxyzCPRTXYZ%',
  O: 'bdeghjklmnprstuwyzBCGHIMPRSTUVWZ%',
};
/** Codes for which the flag # changes the case: to capitals, but `%#p` to small letters. */
const CASED = 'aAbBhpZ';
const NUMBERS = 'CdegGHIjklmMSuUVwWyY';
const PADDED_WITH_SPACES = 'ekl';
const WIDEST = 1000;

/** A code has flags and a width of the GNU library: `%-d` is a day without its zero. */
const CODE = /%([-_0^#]*)(\d*)([EO]?)([\s\S]?)/g;

/**
 * A date in a format; a code that Python's C library does not know stays as it is.
 * @throws Error for such a code with a width or a flag that changes it
 */
export function strftime(format: string, date: Date): string {
  return format.replace(CODE, (all, flags: string, width: string, modifier: string, letter: string) => {
    const hasParts = flags + width + modifier !== '';
    const write = codes[letter];
    const isKnown = write !== undefined && (modifier === '' || WITH[modifier]?.includes(letter) === true);
    if (!isKnown || (letter === 'f' && hasParts)) {
      if (width !== '' || flags.includes('^')) throw new Error(`strftime_now: drmas does not write '${all}'`);
      return all;
    }
    if (letter === 'z') return '';
    if (Number(width) > WIDEST) throw new Error(`strftime_now: expected a width of at most ${WIDEST} in '${all}'`);
    return filled(write(date), letter, flags, Number(width));
  });
}

/** The text of a code with its flags, in its width. */
function filled(plain: string, letter: string, flags: string, width: number): string {
  const isNumber = NUMBERS.includes(letter);
  const [own = isNumber && !PADDED_WITH_SPACES.includes(letter) ? '0' : ' '] = flags.match(/[-_0](?=[^-_0]*$)/) ?? [];
  let text = plain;
  if (isNumber) {
    const digits = text.replace(/^[ 0]+(?=\d)/, '');
    text = own === '-' ? digits : digits.padStart(text.length, own === '0' ? '0' : ' ');
  }
  const isChanged = flags.includes('#') && CASED.includes(letter);
  if (isChanged && letter === 'p') text = text.toLowerCase();
  else if ((flags.includes('^') && letter !== 'P') || isChanged) text = text.toUpperCase();
  return text.padStart(width, own === '0' ? '0' : ' ');
}
