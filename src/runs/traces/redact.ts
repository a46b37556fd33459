/** Masks secrets and personal data in texts and numbers of traces. It finds fixed forms; names of people have none. */

import { isIP } from 'node:net';
import { DEEPEST, exactJson, isObject, NumberText } from '@drmas/engine/errors';
import { gitleaksRules } from './gitleaks-rules.js';
import { jsonOf } from './span-fields.js';

/** Changes a text before it is stored. Undefined leaves the whole call out. */
export type Redact = (text: string) => string | undefined;

interface SecretForm {
  readonly name: string;
  /** Captured groups come first and are kept; the rest is masked. Each form reads a text in linear time. */
  readonly form: RegExp;
  /** Whether what would be masked is of this kind. */
  readonly holds?: (text: string) => boolean;
}

/** The end of a name whose value is a secret: `DB_PASSWORD`, `clientSecret`, `x-api-key`, `accessToken`. */
const secretName = String.raw`(?:(?:passw(?:or)?[dt]|kennwort|mot de passe|contraseña|parola|пароль|密码|passphrase|(?<![a-z])pwd(?!=[/~])|secret|api key|(?:api|access|secret|private|account|subscription|auth)[-_]?key)(?:[-_][\w-]{1,30}|\d{1,3})?|(?<=[a-z][-_.]{0,2})token\d{0,3})`;

/** Between a name and its value: quotes of the name, which may be escaped, and a sign. */
const assigned = String.raw`(?:\\{0,7}["'])?\s{0,9}(?:=>|[:=])\s{0,9}`;

/** A value up to its closing quote, or up to the next gap. The opening quote is kept. */
const secretValue = String.raw`(?!\\{0,7}["']?\[(?:private key|token|API key|bearer)\])(?:(\\{1,7}["'])[^"'\\\n]{1,999}|(")(?:[^"\\\n]|\\.){1,999}|(')(?:[^'\\\n]|\\.){1,999}|[^\s"',;]{6,})`;

/** Kinds of data with a fixed form, in the order in which they are masked. */
const kinds: readonly SecretForm[] = [
  {
    name: 'private key',
    form: /-----BEGIN [A-Z ]*PRIVATE KEY(?: BLOCK)?-----[^-]*(?:-{1,4}[^-]+)*-----END [A-Z ]*PRIVATE KEY(?: BLOCK)?-----/g,
  },
  // A key without its end, such as one that a log cut off.
  {
    name: 'private key',
    form: /-----BEGIN [A-Z ]*PRIVATE KEY(?: BLOCK)?-----(?:(?:\s|\\[rn])+[\w-]{1,40}: [^\n\\]{1,200})*(?:(?:\s|\\[rn])+[A-Za-z0-9+/]{16,}={0,2})+(?:(?:\s|\\[rn])+[A-Za-z0-9+/]{1,15}={1,2})?/g,
  },
  { name: 'token', form: /(?<![\w-])((?:\w{1,30}-){0,4})eyJ[\w-]{8,}\.[\w-]{8,}\.[\w-]+/g },
  { name: 'API key', form: /\b(?:sk|pk|rk)[-_][A-Za-z0-9][\w-]{15,}\b/g, holds: hasDigit },
  {
    name: 'API key',
    form: /\b(?:xox[abeprs]-[\w-]{16,}|(?:gh[oprsu]|hf|npm)_[A-Za-z0-9]{16,}|(?:github_pat_|glpat-|AIza)[\w-]{16,}|AKIA[A-Z0-9]{16}\b)/g,
  },
  // Keys of fixed form that gitleaks has no rules for.
  {
    name: 'API key',
    form: /(?<![\w-])(?:(?:gsk|xai|r8|whsec|secret|dckr_pat|tml|fw|nvapi|tvly|csk|e2b|vercel_blob_rw)[-_]|ya29\.)[A-Za-z0-9][\w-]{18,}/g,
    holds: hasDigit,
  },
  // Keys of services begin with a short word of their own; long hashes and ids of models' services do too.
  {
    name: 'API key',
    form: /(?<![\w-])(?!(?:sha\d*|md5|resp|msg|call|rs|fc|chatcmpl|toolu|run|thread|asst|file|uuid)[-_])[a-z]{2,7}\d?_(?:[a-z0-9]{2,6}_)?[A-Za-z0-9]{32,}(?:_[A-Za-z0-9]{6,})?(?![\w-])/g,
    holds: isMixed,
  },
  {
    name: 'API key',
    form: /\bsntry[su]_[\w+/=-]{30,}|\bNRAK-[A-Z0-9]{27}\b|\b(?:key|fc)-[0-9a-f]{32}\b|\bpat[A-Za-z0-9]{14}\.[0-9a-f]{64}\b/g,
  },
  { name: 'API key', form: /(\bdiscord(?:app)?\.com\/api\/webhooks\/\d{15,20}\/)[\w-]{40,}/g },
  { name: 'API key', form: /(?<![\w-])[MNO][\w-]{23,27}\.[\w-]{6}\.[\w-]{27,40}(?![\w-])/g },
  { name: 'API key', form: /\b\d{8,10}:A[\w-]{34}(?![\w-])/g },
  { name: 'API key', form: /([?&]sig=)[\w%+/-]{20,}={0,2}/g },
  {
    name: 'password',
    form: /(\b(?:set-)?cookie(?:\\{0,7}["'])?\s{0,3}[:=]\s{0,3}(?:\\{0,7}["'])?)[\w.-]{1,64}=[^"'\\\n]{3,}/gi,
  },
  { name: 'password', form: /(\bcurl\s(?:[^\n]{0,200}\s)?(?:-u|--user)[ =]{0,3}["']?[^\s:"']{1,99}:)[^\s"']{2,}/g },
  {
    name: 'password',
    form: /("auth\\{0,7}"\s{0,9}:\s{0,9}\\{0,7}")[A-Za-z0-9+/]{8,}={0,2}/g,
    holds: isNameAndPassword,
  },
  {
    name: 'password',
    form: new RegExp(String.raw`(basic[-_]?auth${assigned}(?:\\{0,7}["'])?[^\s"'\\:]{1,99}:)[^\s"'\\,;]+`, 'gi'),
  },
  { name: 'password', form: /(\b_auth\s{0,3}=\s{0,3})[A-Za-z0-9+/]{8,}={0,2}/g, holds: isNameAndPassword },
  // A flag of a command, with its value behind a space.
  {
    name: 'password',
    form: /(?<![\w-])(--?(?:[a-z]{1,20}-){0,3}(?:password|passwd|token|secret|api-?key)\s{1,3}["']?)[^\s"'<$-][^\s"']{5,}/gi,
    holds: isMixed,
  },
  { name: 'password', form: /(\bsshpass\s{1,9}-p\s{0,9})[^\s"'][^\s"']*/g },
  { name: 'password', form: /(\blogin\s{1,9}\S{1,99}\s{1,9}password\s{1,9})\S+/g },
  { name: 'password', form: /(<(?:password|passwd|pwd|secret|api[-_]?key|token)>)[^<\s][^<]{0,999}(?=<\/)/gi },
  { name: 'password', form: /(\b(?:client|tls)[-_.]key(?:-data)?:\s{1,9})[A-Za-z0-9+/]{40,}={0,2}/g },
  { name: 'password', form: /(\b[A-Z][A-Z0-9]{0,30}_(?:PASS|PW)=)[^\s"']{4,}/g },
  { name: 'password', form: /(\bmysql\w{0,9}\s(?:[^\n]{0,200}\s)?-p)[^\s"'-][^\s"']*/g },
  {
    name: 'password',
    form: new RegExp(`(${secretName}:\\s?[|>][-+]?\\d?[ \\t]*(?:\\n|\\\\n)[ \\t]{1,20})[^\\s\\\\]+`, 'gi'),
  },
  { name: 'bearer', form: /\bBearer\s+[\w.~+/-]{16,}=*/g },
  { name: 'password', form: /(authorization\W{1,9}(?:basic|bearer|token)\s{1,9})[^\s"'\\,;]{6,}/gi },
  { name: 'password', form: /(authorization\W{1,9}[a-z][a-z-]{1,20}\s{1,9})[\w.~+/-]{6,}=*/gi, holds: isMixed },
  { name: 'password', form: /(\bbasic\s{1,9})[A-Za-z0-9+/]{6,}={0,2}/gi, holds: isNameAndPassword },
  { name: 'password', form: /(:\/\/[^\s/:@"']{0,99}:)[^\s/"']{1,199}(?=@)/g },
  { name: 'password', form: new RegExp(`(${secretName}${assigned})${secretValue}`, 'gi') },
  {
    name: 'password',
    form: new RegExp(String.raw`((?:(?<![a-z])token|credentials?)${assigned}(?:\\{0,7}["'])?)[^\s"'\\,;]{8,}`, 'gi'),
    holds: isMixed,
  },
  // Letters of all alphabets, an @ of full width, and signs without width that hide an address from a search.
  {
    name: 'e-mail address',
    form: /(?<![\p{L}\p{N}\p{M}_.%+-])(?:"[^"\s@]{1,64}"|[\p{L}\p{N}\p{M}_.%+-]+)[\u200B-\u200D\u2060\uFEFF]{0,3}[@＠][\u200B-\u200D\u2060\uFEFF]{0,3}[\p{L}\p{N}\p{M}-]+(?:\.[\p{L}\p{N}\p{M}-]+)*\.[\p{L}\p{M}]{2,}/gu,
  },
  { name: 'card number', form: /\b\d(?:[ -]?\d){12,18}\b/g, holds: isCardNumber },
  {
    name: 'card number',
    form: /(?<![\w.])\d{4}(?:(?:\.\d{4}){2}\.|(?:[\u00A0\u202F]\d{4}){2}[\u00A0\u202F])\d{1,7}\b/g,
    holds: isCardNumber,
  },
  {
    name: 'IBAN',
    form: /\b[A-Z]{2}\d{2}(?:[ \u00A0\u202F-]?[A-Z0-9]{4}){3,7}(?:[ \u00A0\u202F-]?[A-Z0-9]{1,3})?\b/gi,
    holds: isIban,
  },
  { name: 'phone number', form: /(?<![\w.])\+\d{1,3}(?:[ ().-]{0,2}\d){7,12}(?!\d)/g },
  { name: 'social security number', form: /(?<![\w-])(?!000|666|9)\d{3}-(?!00)\d{2}-(?!0000)\d{4}(?![\w-])/g },
  {
    name: 'address of a computer',
    form: /\b(?:\d{1,3}\.){3}\d{1,3}\b/g,
    holds: (text) => text.split('.').every((part) => Number(part) < 256),
  },
  { name: 'address of a computer', form: /(?<![\w:-])(?:[0-9A-Fa-f]{2}[:-]){5}[0-9A-Fa-f]{2}(?![\w:-])/g },
  {
    name: 'address of a computer',
    form: /(?<![\w.])[0-9A-Fa-f]{4}\.[0-9A-Fa-f]{4}\.[0-9A-Fa-f]{4}(?!\w|\.\w)/g,
    holds: isMixed,
  },
  { name: 'address of a computer', form: /(?<![\w:.])[0-9A-Fa-f:]{6,39}(?![\w:])/g, holds: isIPv6 },
];

/** The rules of gitleaks come before the values of names such as `password`, which would hide what a key is. */
const AFTER_KEYS = kinds.findIndex(({ name }) => name === 'bearer');

export type Masked = Record<string, number>;

/** The rules of gitleaks. Each is looked for only in texts that have one of its words. */
const rules = gitleaksRules.map(([, entropy, words, pattern]) => ({
  words: words.split(' ').filter((word) => word !== ''),
  form: new RegExp(pattern, 'g'),
  entropy,
}));

/** A word so short that most texts have it. */
const isShort = (word: string) => word.length < 3;
const [common, rare] = [
  rules.filter(({ words }) => words.some(isShort)),
  rules.filter(({ words }) => !words.some(isShort)),
];
/** Most texts have none of these words, so one search answers for all rules. */
const rareWords = new RegExp(
  [...new Set(rare.flatMap(({ words }) => words))].map((word) => word.replaceAll(/[^\w-]/g, String.raw`\$&`)).join('|'),
);

/** Shannon's entropy of the characters of a text, in bits a character. */
function entropyOf(text: string): number {
  const counts = new Map<string, number>();
  for (const letter of text) counts.set(letter, (counts.get(letter) ?? 0) + 1);
  return [...counts.values()].reduce((sum, count) => sum - (count / text.length) * Math.log2(count / text.length), 0);
}

/** Masks the group of a rule that has the secret, or the whole passage. */
function withoutKeys(text: string, masked: Masked): string {
  const small = text.toLowerCase();
  const candidates = rareWords.test(small) ? rules : common;
  return candidates.reduce((rest, { words, form, entropy }) => {
    if (!words.some((word) => small.includes(word))) return rest;
    return rest.replace(form, (passage: string, ...groups: unknown[]) => {
      const group = groups.slice(0, -2).find((each): each is string => typeof each === 'string' && each !== '');
      const secret = group ?? passage;
      if (entropyOf(secret) < entropy || /^\[[\w -]+\]$/.test(secret)) return passage;
      masked['API key'] = (masked['API key'] ?? 0) + 1;
      const at = passage.lastIndexOf(secret);
      return `${passage.slice(0, at)}[API key]${passage.slice(at + secret.length)}`;
    });
  }, text);
}

/** A redaction that puts `[e-mail address]` and the like in the place of each passage, and counts it. */
function masking(masked: Masked): (text: string) => string {
  return (text) =>
    kinds.reduce(
      (rest, { name, form, holds }, i) =>
        (i === AFTER_KEYS ? withoutKeys(rest, masked) : rest).replace(form, (passage: string, ...groups: unknown[]) => {
          const kept = groups
            .slice(0, -2)
            .filter((group) => group !== undefined)
            .join('');
          if (holds !== undefined && !holds(passage.slice(kept.length))) return passage;
          masked[name] = (masked[name] ?? 0) + 1;
          return `${kept}[${name}]`;
        }),
      text,
    );
}

/** The keys of a demonstration whose texts are names, not content. */
export const NAMES: ReadonlySet<string> = new Set(['agent', 'role', 'name', 'id', 'toolCallId', 'parameters']);

/** Why a row is left out: `change` left out a text of it, or its values nest too deep to look at each. */
type LeftOut = 'redacted' | 'deep';

/** The deepest nesting of values that is looked at, through JSON in JSON, which files may have without a limit. */
const DEEPEST_LOOK = 2 * DEEPEST;

/**
 * A function that masks the texts, the numbers and the keys of a row, and then changes its texts by `change`, except at
 * the keys `names`. A text of JSON stays one.
 */
export function redaction(masked: Masked, change: Redact = (text) => text) {
  const mask = masking(masked);
  const secret = () => {
    masked.password = (masked.password ?? 0) + 1;
    return '[password]';
  };
  let left: LeftOut | undefined;
  const maskedText: OnText = (text, under, depth) => {
    if (isSecret(under, text)) return secret();
    const json = jsonOf(text, /^\s*[[{]/);
    if (json === text) return mask(text);
    const whole = exactJson(json);
    const changed = exactJson(walk(json, under, new Set(), maskedText, depth));
    return changed === whole ? text : changed;
  };
  const maskedNumber = (number: number | NumberText, under: string): unknown => {
    const digits = number instanceof NumberText ? number.text : `${number}`;
    if (isSecret(under, digits)) return secret();
    if (!/^-?\d+$/.test(digits) || Math.abs(Number(number)) < LEAST_CARD) return number;
    const masked = mask(digits);
    return masked === digits ? number : masked;
  };
  const walk = (value: unknown, under: string, names: ReadonlySet<string>, onText: OnText, depth: number): unknown => {
    if (depth > DEEPEST_LOOK) left = 'deep';
    if (left !== undefined) return undefined;
    if (typeof value === 'string') return onText(value, under, depth);
    if (typeof value === 'number' || value instanceof NumberText) return maskedNumber(value, under);
    if (Array.isArray(value)) return value.map((each) => walk(each, under, names, onText, depth + 1));
    if (!isObject(value)) return value;
    const fields = new Map<string, unknown>();
    for (const [key, inner] of Object.entries(value)) {
      const name = mask(key);
      // Two keys may become one by the mask; both fields stay.
      const twice = name === key || !fields.has(name) ? '' : ` ${fields.size}`;
      fields.set(`${name}${twice}`, names.has(key) ? inner : walk(inner, key, names, onText, depth + 1));
    }
    return Object.fromEntries(fields);
  };
  return <Row extends object>(row: Row, names: ReadonlySet<string>): Row | LeftOut => {
    left = undefined;
    const onText: OnText = (text, under, depth) => {
      const kept = change(maskedText(text, under, depth) ?? '');
      if (kept === undefined) left = 'redacted';
      return kept;
    };
    const changed = walk(row, '', names, onText, 0) as Row;
    return left ?? changed;
  };
}

type OnText = (text: string, under: string, depth: number) => string | undefined;

/** The least number that is looked at as the number of a card: shorter ones are more often times and ids. */
const LEAST_CARD = 1e14;

const secretKey = new RegExp(`${secretName}$`, 'i');

/** Whether a field holds a secret: a password, or one word under the name of a key. A game may have a secret word. */
function isSecret(key: string, text: string): boolean {
  if (/^(?:secret|token)(?!.*key)/i.test(key)) return /^\S{8,}$/.test(text) && isMixed(text);
  if (key === 'auth') return /^[A-Za-z0-9+/]{8,}={0,2}$/.test(text) && isNameAndPassword(text);
  if (/^(?:set-)?cookie$/i.test(key)) return text.includes('=');
  if (/authorization$/i.test(key)) return /^(?!basic|bearer)[a-z-]{2,20}\s\S{6,}$/i.test(text) && isMixed(text);
  return secretKey.test(key) && (/pass|pwd/i.test(key) ? text !== '' : /^\S{6,}$/.test(text));
}

function hasDigit(text: string): boolean {
  return /\d/.test(text);
}

function isMixed(text: string): boolean {
  return hasDigit(text) && /[A-Za-z]/.test(text);
}

/** Whether a text in base 64 is a name and a password, as in the scheme Basic; a word after "basic" hardly is. */
function isNameAndPassword(text: string): boolean {
  return /^[ -~]*:[ -~]*$/.test(Buffer.from(text, 'base64').toString('latin1'));
}

/** The check of ISO 7064, MOD 97-10, on an account number. */
function isIban(text: string): boolean {
  if (/[a-z]/.test(text) && /[A-Z]/.test(text)) return false; // a text in base 64
  const letters = text.replaceAll(/[^A-Za-z0-9]/g, '').toUpperCase();
  const moved = letters.slice(4) + letters.slice(0, 4);
  return [...moved].reduce((rest, letter) => Number(`${rest}${Number.parseInt(letter, 36)}`) % 97, 0) === 1;
}

/** Node's own check; a time such as 12:30:45 is none. */
function isIPv6(text: string): boolean {
  return isIP(text) === 6 && /[1-9A-Fa-f]/.test(text);
}

/** Luhn's check digit, ISO/IEC 7812-1. */
function isCardNumber(text: string): boolean {
  const digits = [...text]
    .filter((character) => /\d/.test(character))
    .map(Number)
    .reverse();
  const sum = digits.reduce(
    (total, digit, i) => total + (i % 2 === 0 ? digit : digit > 4 ? 2 * digit - 9 : 2 * digit),
    0,
  );
  return sum % 10 === 0;
}
