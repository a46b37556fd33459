/** Brings an answer's spelling to one form before it is read: spacing, brackets, symbols, units, words. */
import { ownValue } from '@drmas/engine/errors';

const UNICODE: Readonly<Record<string, string>> = {
  ...Object.fromEntries([...'−‐‒–'].map((dash) => [dash, '-'])),
  ...Object.fromEntries([...'×·⋅∙∗'].map((dot) => [dot, '*'])),
  ...Object.fromEntries([...'÷∕⁄'].map((slash) => [slash, '/'])),
  ...Object.fromEntries(
    'α alpha β beta γ gamma δ delta ε epsilon θ theta κ kappa λ lambda μ mu π pi ρ rho σ sigma φ phi ω omega'
      .match(/\S \S+/g)
      ?.map((pair) => [pair.charAt(0), `\\${pair.slice(2)} `]) ?? [],
  ),
  '≤': '\\le ',
  '≥': '\\ge ',
  '≠': '\\ne ',
  '±': '\\pm ',
  '∞': '\\infty ',
  '∪': '\\cup ',
  '∈': '\\in ',
  '√': '\\sqrt ',
  '≈': '=',
  '∅': '\\emptyset ',
  '°': '^\\circ ',
  '⌊': '\\lfloor ',
  '⌋': '\\rfloor ',
  '⌈': '\\lceil ',
  '⌉': '\\rceil ',
  '⟨': '(',
  '⟩': ')',
  '‖': '|',
};

const SYMBOLS: Readonly<Record<string, string>> = {
  dfrac: '\\frac',
  tfrac: '\\frac',
  cfrac: '\\frac',
  dbinom: '\\binom',
  tbinom: '\\binom',
  cdot: '*',
  times: '*',
  div: '/',
  leq: '\\le',
  geq: '\\ge',
  lt: '<',
  gt: '>',
  neq: '\\ne',
  approx: '=',
  varnothing: '\\emptyset',
  lbrace: '\\{',
  rbrace: '\\}',
  lbrack: '[',
  rbrack: ']',
  lvert: '|',
  rvert: '|',
  vert: '|',
  lVert: '|',
  rVert: '|',
  Vert: '|',
  mid: '|',
  langle: '(',
  rangle: ')',
  lparen: '(',
  rparen: ')',
  left: '',
  middle: '',
  right: '',
  ...Object.fromEntries(
    ['big', 'Big', 'bigg', 'Bigg'].flatMap((size) => ['', 'l', 'm', 'r'].map((side) => [size + side, ''])),
  ),
  displaystyle: '',
  limits: '',
  quad: ' ',
  qquad: ' ',
  iff: ',',
  land: ',',
  lor: ',',
  ldots: '...',
  dots: '...',
  cdots: '...',
};

const TEXT_COMMANDS = 'text|textbf|textit|textrm|textnormal|mbox|mathrm|mathbf|mathit|mathsf|operatorname|hbox';
const TEXT = new RegExp(`\\\\(${TEXT_COMMANDS})\\s*\\{([^{}]*)\\}(\\s*\\^\\s*(?:\\{\\d\\}|\\d))?`, 'g');
/** Single letters that are units in upright type: 5\mathrm{m}, but not 5\mathrm{i}. */
const UNIT_LETTER = /^\s*[mgshlLNJWVAKCFB]\s*$/;
/** The text after a word that joins two parts, as in 5\text{ choose }2. No relation or operator follows it. */
const GOES_ON = new RegExp(
  String.raw`^(?:[(|]|\s*(?:\d|(?!(?:or|and)(?![A-Za-z]))[A-Za-z]|\\(?!(?:${TEXT_COMMANDS}|lt|le|leq|gt|ge|geq|neq?|in|cup|cap|pm|mp|times|cdot|div|end|right|r[a-z]+|q?quad|implies|iff|land|lor|to|approx|[Bb]igg?[rm]?)(?![A-Za-z]))[A-Za-z]))`,
);

const SHORT_UNITS = 'cm|mm|km|kg|ft|mph|hrs?|mins?|secs?';
const FUNCTION_WORDS = 'sqrt|infty|infinity|arcsin|arccos|arctan|sinh|cosh|tanh';

/** Words that may follow a number without changing its meaning: 5 apples, 5cm, 4 square meters, 60 km/h. */
const UNIT = new RegExp(
  String.raw`(?<=(?:[\d)}%]|\\pi)\s*)(?<![_^]\{?\d{0,3}\}?\s*)(?:(?<=\d)(?:${SHORT_UNITS})|` +
    String.raw`\b(?:m\/s|(?:(?:square|cubic|sq)\s+)?(?:${SHORT_UNITS}|cents?|units?|(?!(?:${FUNCTION_WORDS})\b)[a-z]{4,30}))` +
    String.raw`(?:\s*\/\s*[a-z]{1,30}\b|\s+per\s+[a-z]{1,30}|\s+old)?)(?:\s*\^\s*\{?[23]\}?)?\s*\.?$`,
  'i',
);

/** Degrees, of an angle or with a scale of temperature on either side: `^{\circ}\text{C}`, `C^{\circ}`. */
const SCALE = String.raw`(?:[CF](?![A-Za-z])|\\(?:${TEXT_COMMANDS})\s*\{\s*[CF]\s*\})`;
const DEGREES = new RegExp(
  String.raw`(?:(?<=[\d)}\s])${SCALE}\s*)?(?:\{\s*\}\s*)?(?:\^\s*(?:\{\s*\\circ\s*\}|\\circ(?![A-Za-z]))|\^?(?:\{\\degrees?\}|\\degrees?(?![A-Za-z])))(?:\s*${SCALE})?`,
  'g',
);

/** A unit of length and its power at the end: `\mbox{ cm}^2`, `m^3`. */
const LENGTH_POWER =
  /(?:\b[cmk]?m|\bft|\bin|\b(?:inch|inche|feet|foot|yard|meter|metre|mile|unit)s?)\s*\}?\s*\^\s*\{?([23])\}?\s*\$?\s*\.?$/i;

/** The power of the unit at the end of an answer, if any: square and cubic centimetres are different units. */
export function unitPower(answer: string): string | undefined {
  const text = inUsualCharacters(answer.slice(-LONGEST_UNIT));
  const [, word] = /\b(square|cubic)\s/i.exec(text) ?? [];
  return word === undefined ? LENGTH_POWER.exec(text)?.[1] : word.toLowerCase() === 'square' ? '2' : '3';
}

/** The longest unit in characters. */
const LONGEST_UNIT = 40;

/** The word for a power of ten at the end of an answer, if any: 5 million and 5 thousand are different numbers. */
export function magnitude(answer: string): string | undefined {
  const words = /(?<![A-Za-z])(dozen|hundred|thousand|million|billion|trillion)s?(?![A-Za-z])/i;
  return words.exec(answer.slice(-LONGEST_UNIT))?.[1]?.toLowerCase();
}

/** Thousands that thin spaces separate: 12\,345. */
const THIN_GROUPS = /(?<![\d.])\d{1,3}(?:(?:\\,|[\u2009\u202f])\d{3})+(?!\d)/g;

const WORD_FUNCTIONS =
  /(?<![A-Za-z\\])(sqrt|arcsin|arccos|arctan|sinh|cosh|tanh|sin|cos|tan|cot|sec|csc|ln|log|exp|pi|infty|alpha|beta|gamma|delta|epsilon|theta|kappa|lambda|sigma|varphi|omega)(?![A-Za-z])/g;
/** A function that is written together with its variable, as in sinx. */
const GLUED_FUNCTIONS = /(?<![A-Za-z\\])(sin|cos|tan|cot|sec|csc|ln|log)(?=[xyz](?![A-Za-z]))/g;

/** Raised and lowered digits and fractions of one character in LaTeX, and other forms of a character as usual. */
const inUsualCharacters = (text: string): string =>
  text
    .replace(/[¹²³⁰⁴-⁹⁺⁻ⁿ]+/g, (power) => (power.length > 1 ? `^{${power}}` : `^${power}`))
    .replace(/[₀-₉]+/g, (index) => (index.length > 1 ? `_{${index}}` : `_${index}`))
    .replace(/[¼½¾⅐-⅞]/g, (fraction) => fraction.normalize('NFKC').replace(/(\d+)⁄(\d+)/, '\\frac{$1}{$2}'))
    .normalize('NFKC')
    .replace(/√\s*(\d+(?:\.\d+)?)/g, '\\sqrt{$1}')
    .replace(SYMBOL, (symbol) => UNICODE[symbol] ?? symbol);
const SYMBOL = new RegExp(`[${Object.keys(UNICODE).join('')}]`, 'gu');

/**
 * The cleaned text, with commas in place of "or" and "and", and `degree` in place of the sign of degrees. The time is
 * linear in the length of the text.
 */
export function cleanAnswer(answer: string, degree = ' '): string {
  let text = inUsualCharacters(answer.replace(THIN_GROUPS, (digits) => digits.replace(/\D/g, '')));
  text = text.replace(/(?<=\d)\{,\}(?=\d{3}(?!\d))/g, '');
  // Thousands; between brackets another comma separates.
  if (/[([]|\\(?:\{|langle|lparen|lbrack)/.test(text)) text = text.replace(/(?<=\d)(?:,\\!|\\!,)(?=\d{3}(?!\d))/g, '');
  text = text
    .replace(/^\s*(?:"([^"]*)"|'([^']*)'|“([^”]*)”)\s*$/, '$1$2$3')
    .replace(/<=|>=/g, (sign) => (sign === '<=' ? '\\le ' : '\\ge '))
    .replace(/(?<=[)\]]\s*)U(?=\s*[([])/g, '\\cup ')
    .replace(/\\?[$€£¥₹]/g, '')
    .replaceAll('{,}', ',')
    .replace(/(?<!\\)\\[()]|^\s*\\\[|\\\]\s*$/g, ' ');
  text = text.replace(/(?<!\\)\\\\(?=[dt]?frac\b|sqrt\b|pi\b)/g, '\\');
  text = text
    .replace(DEGREES, degree)
    .replace(/(?<!\\)\\\|/g, '|')
    .replace(/\\\\|\\[,;:!> ]|~|\s+/g, (space) =>
      // A thin space after a comma marks thousands, and \\\\ ends a row; answer.ts needs to see them.
      space === '\\!' || space === '\\\\' ? space : ' ',
    );
  text = text.replace(TEXT, (all, command: string, words: string, power: string | undefined, at: number) =>
    textIn(
      command,
      words,
      power ?? '',
      text.slice(Math.max(0, at - SIDE), at),
      text.slice(at + all.length, at + all.length + SIDE),
    ),
  );
  text = text.replace(/\\([A-Za-z]+)/g, (command, name: string) => ownValue(SYMBOLS, name) ?? command);
  text = text.replace(/(?<![A-Za-z\\])(?:or|and)(?![A-Za-z])/g, ',').replace(WORD_FUNCTIONS, '\\$1');
  text = text.replace(GLUED_FUNCTIONS, '\\$1 ');
  text = text.replace(/(?<![A-Za-z\\])(?:infinity|inf|oo)(?![A-Za-z])/gi, '\\infty ').replace(/\*\*/g, '^');
  text = withoutEnd(text.replace(/\\%/g, '%').replace(/^\s*=/, ''));
  text = text.replace(/(?<=\d\s*)x(?=\s*10\s*\^)/g, '*');
  return text.replace(UNIT, '').trim();
}

/** The text without spaces, thin spaces, full stops and a lone backslash (the rest of "\ ") at its end. */
function withoutEnd(text: string): string {
  let end = text.length;
  for (;;) {
    const last = text[end - 1] ?? '';
    if (last === '\\' ? text[end - 2] !== '\\' : last !== '' && ' .。'.includes(last)) end--;
    else if (last === '!' && text[end - 2] === '\\') end -= 2;
    else return text.slice(0, end).trim();
  }
}

/** The characters before and after a text that decide its kind. */
const SIDE = 30;

/** Replaces \text{...} and its kin: a conjunction, a unit behind a quantity, a function, or an answer in words. */
function textIn(command: string, words: string, power: string, before: string, after: string): string {
  if (/^[\s,]*(?:or|and)\s*$/i.test(words)) return ',';
  const asCommand = `\\${words.replace(/\s/g, '')}${power} `;
  const isWord = /^[A-Za-z\s]*$/.test(words) && words.trim().length > 1;
  if (command === 'operatorname') return isWord ? asCommand : words + power;
  if (!/(?:[\d)}%!]|\\pi)\s*$/.test(before) || /\d/.test(words)) return words + power;
  const isVariable = words.trim().length === 1 && (!UNIT_LETTER.test(words) || /^math(?:bf|it)$/.test(command));
  if (isVariable) return words + power;
  return isWord && power === '' && GOES_ON.test(after) ? asCommand : ' ';
}
