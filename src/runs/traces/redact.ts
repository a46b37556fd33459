/** Masks secrets and personal data in texts of traces. It finds what has a fixed form; names of people have none. */

/** Changes a text before it is stored. Undefined leaves the whole call out. */
export type Redact = (text: string) => string | undefined;

/** Kinds of data with a fixed form, in the order in which they are masked. */
const kinds: readonly { readonly name: string; readonly form: RegExp; readonly holds?: (text: string) => boolean }[] = [
  { name: 'private key', form: /-----BEGIN [A-Z ]*PRIVATE KEY-----[\s\S]*?-----END [A-Z ]*PRIVATE KEY-----/g },
  { name: 'token', form: /\beyJ[\w-]{8,}\.[\w-]{8,}\.[\w-]+/g },
  {
    name: 'API key',
    form: /\b(?:sk|pk|rk|xox[abprs]|gh[opsu]|github_pat|glpat|hf|AIza)[-_]?[A-Za-z0-9][\w-]{15,}\b|\bAKIA[A-Z0-9]{16}\b/g,
    holds: (text) => /\d/.test(text),
  },
  { name: 'bearer', form: /\bBearer\s+[\w.~+/-]{16,}=*/g },
  { name: 'password', form: /\b(?:password|passwd|secret|api[-_]?key)["']?\s*[:=]\s*["']?[^\s"',;]{6,}/gi },
  { name: 'e-mail address', form: /\b[\w.%+-]+@[\w-]+(?:\.[\w-]+)*\.[A-Za-z]{2,}\b/g },
  { name: 'card number', form: /\b\d(?:[ -]?\d){12,18}\b/g, holds: isCardNumber },
  { name: 'IBAN', form: /\b[A-Z]{2}\d{2}(?: ?[A-Z0-9]{4}){3,7}(?: ?[A-Z0-9]{1,3})?\b/g },
  { name: 'phone number', form: /(?<![\w.])\+\d{1,3}(?:[ ().-]{0,2}\d){7,12}(?!\d)/g },
  {
    name: 'address of a computer',
    form: /\b(?:\d{1,3}\.){3}\d{1,3}\b/g,
    holds: (text) => text.split('.').every((part) => Number(part) < 256),
  },
];

/** Counts, by kind, of the masked passages. */
export type Masked = Record<string, number>;

/** A redaction that puts `[e-mail address]` and the like in the place of each passage, and counts it. */
export function masking(masked: Masked): (text: string) => string {
  return (text) =>
    kinds.reduce(
      (rest, { name, form, holds }) =>
        rest.replace(form, (passage) => {
          if (holds !== undefined && !holds(passage)) return passage;
          masked[name] = (masked[name] ?? 0) + 1;
          return `[${name}]`;
        }),
      text,
    );
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
