/** Random texts for tokenizers: scripts, numerals, marks, white space, and special tokens inside of texts. */
import fc from 'fast-check';

const WORDS = [
  ...[
    'the',
    'Hello',
    "it's",
    "IT'S",
    "don't",
    "we've",
    'naïve',
    'Straße',
    "ſhe'ſ",
    'İstanbul',
    'K',
    'Ω',
    'ﬁ',
    'ﬃ',
    'Ǆ',
  ],
  ...[
    '日本語',
    '中文',
    '한국어',
    '각',
    'ひらがな',
    'العربية',
    'हिन्दी',
    'ไทย',
    'ำ',
    'עברית',
    'e\u0301',
    'a\u0323\u0302',
  ],
  ...['👩‍🚀', '😀', '🏳️‍🌈', '🇩🇪', '½', '²', '①', 'Ⅷ', '٣', '੩', '፲', '〇', '𝟘', '0', '42', '12345', '3.14', '1,000'],
  ...[
    '_',
    '__init__',
    'x=y',
    '{}',
    '()',
    '//',
    '->',
    '...',
    '!?',
    '…',
    '—',
    '“”',
    '€',
    '#',
    '@',
    '<',
    '</s',
    '<|',
    '|>',
  ],
  ...[
    '▁',
    '▁▁',
    'Ġ',
    'Ċ',
    '\ufffd',
    '\u200b',
    '\u200d',
    '\ufeff',
    '\u00ad',
    '\u2028',
    '\0',
    '\x1b',
    '\u0378',
    '\ue000',
  ],
];
const SPACES = [
  ' ',
  '  ',
  '     ',
  '\n',
  '\n\n',
  '\t',
  '\r\n',
  '\r',
  ' \n',
  '\u00a0',
  '\u3000',
  '\u0085',
  '\v',
  ' \t \n  ',
];
/** Characters of Unicode 15, so that versions of tables do not matter. */
const RANGES = [
  ...[
    [0x20, 0x7e],
    [0, 0x1f],
    [0x80, 0x24f],
    [0x300, 0x36f],
    [0x370, 0x52f],
    [0x590, 0x6ff],
    [0x900, 0xdff],
  ],
  ...[
    [0xe00, 0x11ff],
    [0x1e00, 0x209c],
    [0x2100, 0x2bff],
    [0x3000, 0x30ff],
    [0x4e00, 0x9ffc],
    [0xac00, 0xd7a3],
  ],
  ...[
    [0xf900, 0xfa6d],
    [0xfe30, 0xffef],
    [0x10000, 0x1019c],
    [0x1d400, 0x1d7cb],
    [0x1f300, 0x1f6d7],
    [0x20000, 0x2a6dd],
  ],
] as const;

/** The same texts for the same seed. */
export function randomTexts(count: number, seed: number, special: readonly string[]): string[] {
  const character = fc.oneof(
    ...RANGES.map(([least = 0, most = 0]) =>
      fc.integer({ min: least, max: most }).map((codePoint) => String.fromCodePoint(codePoint)),
    ),
  );
  const tokens = fc.constantFrom(...special, ...special.map((token) => [...token].slice(0, -1).join('')));
  const part = fc.oneof(
    { weight: 6, arbitrary: fc.constantFrom(...WORDS) },
    { weight: 5, arbitrary: fc.constantFrom(...SPACES) },
    { weight: 3, arbitrary: fc.stringMatching(/^[a-zA-Z]{1,7} ?$/) },
    { weight: 2, arbitrary: fc.nat(10_000_000).map(String) },
    { weight: 4, arbitrary: character },
    { weight: special.length > 0 ? 1 : 0, arbitrary: special.length > 0 ? tokens : fc.constant('') },
  );
  const texts = fc.array(part, { minLength: 1, maxLength: 16 }).map((parts) => parts.join(''));
  return fc.sample(texts, { numRuns: count, seed });
}

/** Lists of ids, in half of which most stand for single bytes. */
export function randomLists(count: number, seed: number, size: number, bytes: readonly number[]): number[][] {
  const anyId = fc.nat(size - 1);
  const byte = bytes.length > 0 ? fc.constantFrom(...bytes) : anyId;
  const mixed = fc.oneof({ weight: 4, arbitrary: byte }, { weight: 1, arbitrary: anyId });
  const lists = fc.oneof(fc.array(anyId, { maxLength: 12 }), fc.array(mixed, { maxLength: 8 }));
  return fc.sample(lists, { numRuns: count, seed });
}

const ATOMS = [
  'a',
  'b',
  'é',
  '.',
  '\\s',
  '\\S',
  '\\w',
  '\\d',
  '\\p{L}',
  '\\P{L}',
  '[ab]',
  '[^a]',
  '[^\\s\\p{L}]',
  '\\n',
  "'",
];
const PLACES = ['^', '$', '\\b', '\\B', '\\A', '\\z', '\\Z'];
const SIGNS = ['', '', '', '*', '+', '?', '{2}', '{1,2}', '{,2}', '*?', '+?', '??', '++', '*+', '?+'];
const GROUPS = ['(?:', '(?:', '(?i:', '(', '(?=', '(?!', '(?<=', '(?<!', '(?>'];

const { pattern: patterns } = fc.letrec<{ pattern: string }>((tie) => ({
  pattern: fc
    .array(
      fc.oneof(
        { maxDepth: 3 },
        {
          weight: 6,
          arbitrary: fc.tuple(fc.constantFrom(...ATOMS), fc.constantFrom(...SIGNS)).map((two) => two.join('')),
        },
        { weight: 1, arbitrary: fc.constantFrom(...PLACES) },
        {
          weight: 2,
          arbitrary: fc
            .tuple(fc.constantFrom(...GROUPS), tie('pattern'), fc.constantFrom(...SIGNS))
            .map(([open, inside, sign]) => `${open}${inside})${/[=!]$/.test(open) ? '' : sign}`),
        },
        { weight: 1, arbitrary: tie('pattern').map((inside) => `(?:${inside}|${inside}b)`) },
      ),
      { minLength: 1, maxLength: 4 },
    )
    .map((parts) => parts.join('')),
}));

export const randomPatterns = (count: number, seed: number): string[] => fc.sample(patterns, { numRuns: count, seed });
