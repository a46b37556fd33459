import { ArgumentError } from '../../base/errors.js';
import { extractBoxed } from '../tasks/grading/boxed.js';

/** A function from an agent's text (without its stop token) to a value; `undefined` when the text is invalid. */
export type Parser<Value> = (text: string) => Value | undefined;

/** The content of the last `\boxed{...}`; invalid if there is none or it is empty. */
export const boxed: Parser<string> = (text) => {
  const content = extractBoxed(text)?.trim();
  return content === '' ? undefined : content;
};

/**
 * The one option that occurs in the text, any number of times; invalid if no option or several options occur. If
 * options overlap, the longer one counts: `oneOf('correct', 'incorrect')` reads "incorrect" as `incorrect`.
 *
 * @throws ArgumentError when there is no option, an empty one, or the same one twice.
 *
 * @example
 * ```ts
 * import { oneOf } from 'drmas';
 *
 * const verdict = oneOf('<approve>', '<reject>');
 * ```
 */
export function oneOf<const Option extends string>(...options: readonly Option[]): Parser<Option> {
  if (options.length === 0 || options.includes('' as Option) || new Set(options).size < options.length)
    throw new ArgumentError(`oneOf(...): expected different non-empty strings, got ${JSON.stringify(options)}`);
  const longestFirst = [...options].sort((a, b) => b.length - a.length);
  const pattern = new RegExp(
    longestFirst.map((option) => option.replace(/[\\^$.*+?()[\]{}|/-]/g, '\\$&')).join('|'),
    'g',
  );
  return (text) => {
    const occurring = new Set(text.match(pattern));
    return occurring.size === 1 ? options.find((option) => occurring.has(option)) : undefined;
  };
}

/**
 * The content of the last `<name>...</name>`, without the spaces around it; invalid when there is none or it is empty.
 *
 * @throws ArgumentError when `name` is not made of letters, digits, - and _.
 *
 * @example
 * ```ts
 * import { tagged } from 'drmas';
 *
 * const query = tagged('query'); // the content of the last <query>...</query>
 * ```
 */
export function tagged(name: string): Parser<string> {
  if (!/^[\w-]+$/.test(name))
    throw new ArgumentError(`tagged(...): expected letters, digits, - and _, got ${JSON.stringify(name)}`);
  const [open, close] = [`<${name}>`, `</${name}>`];
  return (text) => {
    const end = text.lastIndexOf(close);
    const start = end < 0 ? -1 : text.lastIndexOf(open, end);
    return (start < 0 ? '' : text.slice(start + open.length, end).trim()) || undefined;
  };
}

/** An integer of at most 2^53 - 1: the content of the last `\boxed{...}` if there is one, otherwise the whole text. */
export const integer: Parser<number> = (text) => {
  const digits = (extractBoxed(text) ?? text).trim();
  const value = /^[+-]?\d+$/.test(digits) ? Number(digits) : Number.NaN;
  return Number.isSafeInteger(value) ? value : undefined;
};
