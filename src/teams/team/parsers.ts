import { ArgumentError } from '@drmas/engine/errors';
import { withoutThinking } from '@drmas/engine/tool-calls';
import { extractBoxed } from '../tasks/grading/boxed.js';
import { asZod, type StandardSchema } from './standard-schema.js';

/**
 * A function from an agent's text (without its stop token) to a value; `undefined` when the text is invalid. So are
 * `null`, as `text.match(...)` returns it, `NaN` and an invalid `Date`.
 */
export type Parser<Value> = (text: string) => Value | undefined;

/**
 * A value, and whether its text breaks the format: then the team uses the value, and the turn is invalid and penalised.
 * `{ value: null, penalised: false }` is a valid text whose value is null.
 */
export interface Penalised<Value> {
  readonly value: Value;
  readonly penalised: boolean;
}

/** A parser that may use a text and penalise it too. */
export type UsingParser<Value> = (text: string) => Value | Penalised<Value> | undefined;

/** The content of the last `\boxed{...}`; invalid if there is none or it is empty. */
export const boxed: Parser<string> = (text) => {
  const content = extractBoxed(text)?.trim();
  return content === '' ? undefined : content;
};

/**
 * The one option that occurs in the text, any number of times; invalid if no option or several options occur. The
 * model's thinking (`<think>` ... `</think>`) does not count. If options overlap, the longer one counts:
 * `oneOf('correct', 'incorrect')` reads "incorrect" as `incorrect`.
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
    const occurring = new Set(withoutThinking(text).rest.match(pattern));
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

/**
 * An integer of at most 2^53 - 1: the content of the last `\boxed{...}` if there is one, otherwise the whole text after
 * the model's thinking.
 */
export const integer: Parser<number> = (text) => {
  const digits = (extractBoxed(text) ?? withoutThinking(text).rest).trim();
  const value = /^[+-]?\d+$/.test(digits) ? Number(digits) : Number.NaN;
  return Number.isSafeInteger(value) ? value : undefined;
};

/** The beginning of a fence of three backquotes, with the language that it names, and the end of a fence. */
const [OPENING, CLOSING] = [/^```([^`\n]*)\n/gm, /\n?```[ \t]*$/gm];

/** The texts in the fences of a language. A model may repeat a beginning without an end: the text is read once. */
function fencedIn(text: string, language: RegExp): string[] {
  const found: string[] = [];
  for (let at = 0; ; at = CLOSING.lastIndex) {
    OPENING.lastIndex = at;
    const name = OPENING.exec(text)?.[1];
    CLOSING.lastIndex = OPENING.lastIndex;
    const end = name === undefined ? undefined : CLOSING.exec(text)?.index;
    if (name === undefined || end === undefined) return found;
    if (language.test(name.trim())) found.push(text.slice(OPENING.lastIndex, end));
  }
}

/**
 * The JSON value of a reply if the schema accepts it. The reply after the model's thinking must be only JSON, or have
 * exactly one fenced block with JSON. Nothing is repaired: text that does not parse or does not fit is invalid.
 */
export function jsonParser<Value>(schema: StandardSchema<Value>): Parser<Value> {
  const checker = asZod(schema);
  return (text) => {
    const { rest } = withoutThinking(text);
    const [fenced, ...more] = fencedIn(rest, /^(json)?$/i);
    const source = fenced === undefined || more.length > 0 ? rest : fenced;
    let value: unknown;
    try {
      value = JSON.parse(source);
    } catch {
      return undefined;
    }
    const checked = checker.safeParse(value);
    return checked.success ? checked.data : undefined;
  };
}
