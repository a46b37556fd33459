/**
 * Writes the patterns of secrets that traces are masked by, from the configuration of gitleaks (MIT, by Zachary Rice):
 * `npx tsx scripts/secret-rules.ts gitleaks.toml v8.30.0`. JavaScript's regular expressions of Node 20 have no `(?i)`
 * inside, so letters that match in both cases become classes.
 */
import { readFileSync, writeFileSync } from 'node:fs';

/** Rules that are left out: any text of high entropy beside a word such as `key`, files, and private keys. */
const LEFT_OUT = new Set([
  ...['generic-api-key', 'kubernetes-secret-yaml', 'pkcs12-file', 'private-key'],
  ...['curl-auth-header', 'curl-auth-user'], // quadratic without RE2; redact.ts has forms of its own
]);

const POSIX: Readonly<Record<string, string>> = {
  alnum: '0-9A-Za-z',
  alpha: 'A-Za-z',
  digit: '0-9',
  xdigit: '0-9A-Fa-f',
};

/** How a secret in code ends. In prose it may be followed by a full stop or a bracket. */
const END_OF_CODE = String.raw`(?:[\x60'"\s;]|\\[nr]|$)`;

/** The pattern of Go's RE2 as one of JavaScript without flags. */
export function withoutFlags(pattern: string): string {
  let out = '';
  // The flags of each open group.
  const groups = [{ i: false, s: false }];
  const flags = () => groups.at(-1) as { i: boolean; s: boolean };
  const both = (letter: string) =>
    flags().i && /[a-z]/i.test(letter) ? `${letter.toLowerCase()}${letter.toUpperCase()}` : letter;
  for (let at = 0; at < pattern.length; ) {
    const rest = pattern.slice(at);
    const group = /^\(\?([ims]*)(?:-([ims]+))?([:)])/.exec(rest);
    const set = /^\[(\^?)((?:\[:\w+:\]|\\.|\]?[^\]\\])*?)\]/.exec(rest);
    if (group !== null) {
      const [whole = '', on = '', off = '', end] = group;
      const changed = {
        i: (flags().i || on.includes('i')) && !off.includes('i'),
        s: (flags().s || on.includes('s')) && !off.includes('s'),
      };
      if (end === ')') groups[groups.length - 1] = changed;
      else {
        groups.push(changed);
        out += '(?:';
      }
      at += whole.length;
    } else if (rest.startsWith('(')) {
      groups.push({ ...flags() });
      const [open = '('] = /^\((?:\?P?<\w+>)?/.exec(rest) ?? [];
      out += open === '(' ? '(' : '(';
      at += open.length;
    } else if (rest.startsWith(')')) {
      groups.pop();
      out += ')';
      at++;
    } else if (set !== null) {
      const [whole, not = '', inner = ''] = set;
      const named = inner.replaceAll(/\[:(\w+):\]/g, (_, name: string) => POSIX[name] ?? '');
      const cased = named.replaceAll(/\\.|([A-Za-z])-([A-Za-z])|[A-Za-z]/g, (piece, from?: string, to?: string) => {
        if (piece.startsWith('\\')) return piece;
        if (from === undefined || to === undefined) return both(piece);
        return flags().i ? `${from.toLowerCase()}-${to.toLowerCase()}${from.toUpperCase()}-${to.toUpperCase()}` : piece;
      });
      out += `[${not}${cased.replaceAll('[', '\\[').replaceAll('\\\\[', '\\[')}]`;
      at += whole.length;
    } else if (rest.startsWith('\\x{')) {
      const [whole = '', code = ''] = /^\\x\{([0-9A-Fa-f]+)\}/.exec(rest) ?? [];
      out += `\\u${code.padStart(4, '0')}`;
      at += whole.length;
    } else if (rest.startsWith('\\x')) {
      out += rest.slice(0, 4);
      at += 4;
    } else if (rest.startsWith('\\')) {
      out += rest.startsWith('\\z') ? '$' : rest.slice(0, 2);
      at += 2;
    } else {
      const letter = rest.charAt(0);
      if (letter === '.' && flags().s) out += '[^]';
      else out += both(letter).length === 2 ? `[${both(letter)}]` : letter;
      at++;
    }
  }
  return out;
}

const textOf = (block: string, key: string) =>
  new RegExp(`^${key} = (?:'''([^]*?)'''|"((?:[^"\\\\]|\\\\.)*)")`, 'm')
    .exec(block)
    ?.slice(1)
    .find((each) => each !== undefined);

const [file = '', version = ''] = process.argv.slice(2);
const blocks = readFileSync(file, 'utf8')
  .split(/^\[\[rules\]\]$/m)
  .slice(1);
const rules = blocks.flatMap((block) => {
  const own = block.split(/^\[\[?rules\./m)[0] ?? '';
  const [id, regex] = [textOf(own, 'id'), textOf(own, 'regex')];
  if (id === undefined || regex === undefined || LEFT_OUT.has(id)) return [];
  const entropy = Number(/^entropy = ([\d.]+)/m.exec(own)?.[1] ?? 0);
  const keywords = [...(/^keywords = \[([^\]]*)\]/m.exec(own)?.[1] ?? '').matchAll(/"([^"]*)"/g)].map(
    ([, word]) => word,
  );
  if (keywords.length === 0) throw new Error(`${id}: expected keywords, which tell the texts that the rule reads`);
  const pattern = withoutFlags(
    regex.replace(/^(\(\?i\))?\[\\w\.-\]\{0,50\}\?/, '$1').replace(END_OF_CODE, '(?![\\w-])'),
  );
  new RegExp(pattern, 'g'); // throws for what the translation has missed
  return [{ id, pattern, entropy, keywords }];
});
/** Many rules look for a secret that is assigned to a name of its service; the list writes them by a function. */
const BETWEEN = String.raw`(?:[ \t\w.-]{0,20})[\s'"]{0,3}(?:=|>|:{1,3}=|\|\||:|=>|\?=|,)[\x60'"\s=]{0,5}`;
const inBothCases = (name: string) => name.replaceAll(/[a-z]/g, (letter) => `[${letter}${letter.toUpperCase()}]`);
const assigned = (name: string, secret: string) => `(?:${inBothCases(name)})${BETWEEN}(${secret})(?![\\w-])`;

/** The pattern in the words of the list. */
function written(pattern: string): string {
  const [name = '', secret = ''] = pattern.split(BETWEEN);
  const parts = [
    name.slice(3, -1).replaceAll(/\[([a-z])[A-Z]\]/g, '$1'),
    secret.slice(1, -String.raw`)(?![\w-])`.length),
  ];
  return assigned(parts[0] ?? '', parts[1] ?? '') === pattern
    ? `assigned(${parts.map((part) => JSON.stringify(part)).join(', ')})`
    : JSON.stringify(pattern);
}

const rows = rules.map(
  ({ id, pattern, entropy, keywords }) =>
    `  [${[id, entropy, keywords.join(' ')].map((each) => JSON.stringify(each)).join(', ')}, ${written(pattern)}],`,
);
writeFileSync(
  'src/runs/traces/gitleaks-rules.ts',
  `/**
 * Patterns of secrets, generated by \`scripts/secret-rules.ts\` from https://github.com/gitleaks/gitleaks, ${version}.
 * Do not edit. The licence of the patterns:
 *
 * MIT License
 *
 * Copyright (c) 2019 Zachary Rice
 *
 * Permission is hereby granted, free of charge, to any person obtaining a copy
 * of this software and associated documentation files (the "Software"), to deal
 * in the Software without restriction, including without limitation the rights
 * to use, copy, modify, merge, publish, distribute, sublicense, and/or sell
 * copies of the Software, and to permit persons to whom the Software is
 * furnished to do so, subject to the following conditions:
 *
 * The above copyright notice and this permission notice shall be included in all
 * copies or substantial portions of the Software.
 *
 * THE SOFTWARE IS PROVIDED "AS IS", WITHOUT WARRANTY OF ANY KIND, EXPRESS OR
 * IMPLIED, INCLUDING BUT NOT LIMITED TO THE WARRANTIES OF MERCHANTABILITY,
 * FITNESS FOR A PARTICULAR PURPOSE AND NONINFRINGEMENT. IN NO EVENT SHALL THE
 * AUTHORS OR COPYRIGHT HOLDERS BE LIABLE FOR ANY CLAIM, DAMAGES OR OTHER
 * LIABILITY, WHETHER IN AN ACTION OF CONTRACT, TORT OR OTHERWISE, ARISING FROM,
 * OUT OF OR IN CONNECTION WITH THE SOFTWARE OR THE USE OR OTHER DEALINGS IN THE
 * SOFTWARE.
 */

const between = ${JSON.stringify(BETWEEN)};

/** A secret that is assigned to the name of its service, in letters of both cases. */
const assigned = (name: string, secret: string) =>
  \`(?:\${name.replaceAll(/[a-z]/g, (letter) => \`[\${letter}\${letter.toUpperCase()}]\`)})\${between}(\${secret})(?![\\\\w-])\`;

/** The name of a rule, the least entropy in bits a character, words of which a text has one, and the pattern. */
export const gitleaksRules: readonly (readonly [string, number, string, string])[] = [
${rows.join('\n')}
];
`,
);
