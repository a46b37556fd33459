/**
 * Laws of grading. An answer with another number in any one place is wrong, whether or not the reader knows the
 * operators around it; an answer that is only written differently is right. `DRMAS_TEST_MINUTES=5` tries each law for
 * five minutes, `DRMAS_TEST_SEED=7` other answers.
 */
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { gradeMath } from './math.js';

const minutes = Number(process.env.DRMAS_TEST_MINUTES ?? 0);
const timeout = 60_000 + 120_000 * minutes;
const effort = (numRuns: number) =>
  minutes > 0 ? { numRuns: 1e9, interruptAfterTimeLimit: 60_000 * minutes } : { numRuns };

/** Texts with # for each number and @ for each variable; § stands for another text. */
const forms = [
  ...['#@', '(@+#)', '(@-#)', '(#-@)', '\\frac{@}{#}', '\\lfloor # \\rfloor', '\\lceil # \\rceil', '\\overline{#}'],
  ...['\\gcd(#, #)', '# \\bmod #', '\\foo{#}{#}', '\\varphi(#@)', '[#, #]', '(#, #)', '\\lfloor # / @ \\rfloor'],
  ...['\\lfloor § \\rfloor', '\\left\\lceil § \\right\\rceil', '|§|', '\\|§\\|', '[§]', '(§)', '\\{§\\}', '§\\%'],
  ...['\\sqrt{§}', '\\sqrt[3]{§}', '\\ln(§)', '\\sin(§)', '\\exp(§)', '(§)^2', 'e^{§}', '\\lfloor § \\rfloor!', '(§)!'],
  ...['\\operatorname{foo}(§)', '\\Re(§)', '\\bar{§}', '\\sum_{i=1}^{9}(§)', '\\int_0^1 (§) dx', "f'(§)", '\\nabla(§)'],
  ...[
    '§+§',
    '§-(§)',
    '(§)(§)',
    '\\frac{§}{§}',
    '(§) \\bmod (§)',
    '\\max(§, §)',
    '[§, §)',
    '\\{§, §\\}',
    '§ = §',
    '§, §',
  ],
  ...[
    '(§) \\oplus (§)',
    '\\binom{§}{§}',
    '\\langle §, § \\rangle',
    '\\begin{pmatrix}§\\\\§\\end{pmatrix}',
    '§ \\cup §',
  ],
  ...['§ \\pmod{§}', '§ \\le §', '\\operatorname{lcm}(§,§)', '\\llbracket § \\rrbracket', '\\lim_{i \\to 0}(§)'],
  // Each of these once took two numbers for one.
  ...['f(#)', 'P(#)', 'f(§)', "@'(§)", '\\zeta(#)', '@_{#}', '\\log_{#}(@)', '\\sqrt[#]{@}', '@^{#}', '@^{1/#}'],
  ...[
    '#\\mathbf{@}',
    '#\\operatorname{foo} #',
    '#\\text{ choose }#',
    '#\\mathrm{i}',
    '# \\text{ million}',
    '# \\mid #',
  ],
  ...['|@-#|', '\\sqrt{(@-#)^2}', '\\tanh(@+#)', '\\cos(@/#)', '\\arctan(#@)', '\\lfloor @^2/# \\rfloor', '§ \\pm #'],
  ...[
    '#\\frac{#}{#}@',
    '#^\\circ',
    '#\\text{ cm}',
    '\\begin{vmatrix}#&§\\\\§&#\\end{vmatrix}',
    '(-\\infty, #]',
    '@ > #',
  ],
  ...[
    '\\begin{cases}§ & @ > #\\\\§ & @ < #\\end{cases}',
    '\\lfloor @/# \\rfloor \\lfloor @/# \\rfloor',
    '#:#',
    '§ \\star §',
  ],
];
const { text } = fc.letrec<{ text: string }>((tie) => ({
  text: fc.oneof(
    { maxDepth: 3, withCrossShrink: true },
    fc.constantFrom(...forms.filter((form) => !form.includes('§'))),
    fc
      .tuple(
        fc.constantFrom(...forms.filter((form) => form.includes('§'))),
        fc.array(tie('text'), { minLength: 4, maxLength: 4 }),
      )
      .map(([form, inner]) => {
        const left = [...inner];
        return form.replace(/§/g, () => left.pop() ?? '');
      }),
  ),
}));
const written = fc.oneof(
  fc.integer({ min: 2, max: 2000 }).map(String),
  fc.integer({ min: 1, max: 5000 }).map((hundredths) => (hundredths / 100).toFixed(2)),
  fc.bigInt({ min: 10n ** 9n, max: 10n ** 20n }).map(String),
  fc.integer({ min: 1, max: 999 }).map((digits) => `0.000000${digits}`),
);
/** A number that differs, often in its last digit alone. */
const another = (number: string, other: string, next: boolean): string =>
  next ? number.replace(/\d$/, (digit) => String((Number(digit) + 1) % 10)) : other;

/** The text with these numbers and with a variable of its own in each place. */
function answerWith(form: string, numbers: readonly string[]): string {
  const [variables, left] = [[...'abcghjklmnpqrstuvwxyz'], [...numbers]];
  return form.replace(/@/g, () => variables.shift() ?? '').replace(/#/g, () => left.shift() ?? '');
}
const fits = (form: string) => form.split('#').length <= 16 && form.split('@').length <= 21;
const numbers = fc.array(written, { minLength: 16, maxLength: 16 });

describe('an answer with any operators', () => {
  it('is wrong with another number in any place', { timeout }, () => {
    fc.assert(
      fc.property(text, numbers, written, fc.nat(), fc.boolean(), (form, numbers, other, at, next) => {
        const places = form.split('#').length - 1;
        fc.pre(places > 0 && fits(form));
        const answer = answerWith(form, numbers);
        const place = at % places;
        const changed = another(numbers[place] ?? '', other, next);
        fc.pre(Number(changed) !== Number(numbers[place]) && Number(changed) !== 0);
        expect(gradeMath(answer, answer), answer).toBe(true);
        const wrong = answerWith(form, numbers.with(place, changed));
        expect(gradeMath(wrong, answer), `${wrong} for ${answer}`).toBe(false);
      }),
      effort(300),
    );
  });

  const spaced = (answer: string) =>
    answer.replace(/(?<=[\d)}])(?=[+=<>])|(?<=[+=<>])|(?<=[([])(?=[\w(])|(?=[)\]])/g, ' ');
  const rewritings: Record<string, (answer: string) => string> = {
    'spaces around operators': spaced,
    'the fractions of displays': (answer) => answer.replaceAll('\\frac', '\\dfrac'),
    'brackets that grow': (answer) => answer.replaceAll('(', '\\left(').replaceAll(')', '\\right)'),
    'a box': (answer) => `So it is \\boxed{${answer}}.`,
    'dollars and a full stop': (answer) => `$${answer}$.`,
    'other degrees': (answer) => answer.replaceAll('^\\circ', '^{\\circ}'),
    'commas between thousands': (answer) =>
      answer.replace(/(?<![\d.])\d{4,}(?![\d.])/g, (digits) => digits.replace(/(?=(?:\d{3})+$)(?<=\d)/g, '{,}')),
    'thin spaces between thousands': (answer) =>
      answer.replace(/(?<![\d.])\d{4,}(?![\d.])/g, (digits) => digits.replace(/(?=(?:\d{3})+$)(?<=\d)/g, '\\,')),
    'raised digits': (answer) => answer.replace(/\^(\d)(?!\d)/g, (_, digit) => '⁰¹²³⁴⁵⁶⁷⁸⁹'[digit] ?? ''),
    'characters of full width': (answer) =>
      answer.replace(/[\d(),=%]/g, (character) => String.fromCharCode(character.charCodeAt(0) + 0xfee0)),
    'zeros at the end of decimals': (answer) => answer.replace(/(?<![\d.]|_\{)\d+\.\d+/g, (digits) => `${digits}0`),
  };
  it.each(Object.entries(rewritings))('is right with %s', { timeout }, (_, rewrite) => {
    fc.assert(
      fc.property(text, numbers, (form, numbers) => {
        fc.pre(fits(form));
        const answer = answerWith(form, numbers);
        const rewritten = rewrite(answer);
        fc.pre(rewritten.length < 1000);
        expect(gradeMath(rewritten, answer), `${rewritten} for ${answer}`).toBe(true);
        expect(gradeMath(answer, rewritten), `${answer} for ${rewritten}`).toBe(true);
      }),
      effort(40),
    );
  });
});

/** An operator: its spelling, another order of its operands if it has one, its value in doubles. None cancels. */
interface Operator {
  readonly write: (...operands: string[]) => string;
  readonly swap?: true;
  readonly value: (...operands: number[]) => number;
}
const operators: Operator[] = [
  { write: (a, b) => `(${a} + ${b})`, swap: true, value: (a, b = 0) => a + b },
  { write: (a, b) => `(${a} \\cdot ${b})`, swap: true, value: (a, b = 0) => a * b },
  { write: (a, b) => `\\frac{${a}}{${b}}`, value: (a, b = 0) => a / b },
  { write: (a) => `\\sqrt{${a}}`, value: (a) => Math.sqrt(a) },
  { write: (a) => `\\left|${a}\\right|`, value: (a) => Math.abs(a) },
  { write: (a) => `\\left(${a}\\right)^{2}`, value: (a) => a ** 2 },
  { write: (a) => `\\lfloor ${a} \\rfloor`, value: (a) => Math.floor(a) },
  { write: (a) => `\\lceil ${a} \\rceil`, value: (a) => Math.ceil(a) },
  { write: (a) => `\\arctan(${a})`, value: (a) => Math.atan(a) },
  { write: (a) => `\\ln(${a})`, value: (a) => Math.log(a) },
  { write: (a, b) => `\\log_{${a}}(${b})`, value: (a, b = 0) => Math.log(b) / Math.log(a) },
];
/** A number, by its place, or an operator with its operands. */
type Tree = number | readonly [Operator, ...Tree[]];
const { tree } = fc.letrec<{ tree: Tree }>((tie) => ({
  tree: fc.oneof(
    { maxDepth: 3, depthIdentifier: 'trees' },
    fc.nat(7),
    fc
      .tuple(fc.constantFrom(...operators), tie('tree'), tie('tree'))
      .map(
        ([operator, a, b]): Tree =>
          operator.value.length + operator.write.length > 2 ? [operator, a, b] : [operator, a],
      ),
  ),
}));
const writeTree = (tree: Tree, numbers: readonly string[], swapped = false): string => {
  if (typeof tree === 'number') return numbers[tree] ?? '';
  const [operator, ...operands] = tree;
  const parts = operands.map((operand) => writeTree(operand, numbers, swapped));
  return operator.write(...(swapped && operator.swap ? parts.toReversed() : parts));
};
const valueOfTree = (tree: Tree, numbers: readonly string[]): number => {
  if (typeof tree === 'number') return Number(numbers[tree]);
  const [operator, ...operands] = tree;
  const value = operator.value(...operands.map((operand) => valueOfTree(operand, numbers)));
  return Number.isFinite(value) ? value : Number.NaN; // 1 / (1 / 0) has no value
};

describe('an answer whose value is known', () => {
  it('is wrong with another number that changes the value, and right in another order', { timeout }, () => {
    const eight = fc.array(written, { minLength: 8, maxLength: 8 });
    fc.assert(
      fc.property(tree, eight, written, fc.nat(7), fc.boolean(), (tree, numbers, other, place, next) => {
        const changed = numbers.with(place, another(numbers[place] ?? '', other, next));
        const [answer, wrong] = [writeTree(tree, numbers), writeTree(tree, changed)];
        const [value, wrongValue] = [valueOfTree(tree, numbers), valueOfTree(tree, changed)];
        expect(gradeMath(`${answer} `, answer), answer).toBe(true);
        fc.pre(Number.isFinite(value) && !changed.some((number) => Number(number) === 0));
        const swapped = writeTree(tree, numbers, true);
        expect(gradeMath(swapped, answer), `${swapped} for ${answer}`).toBe(true);
        fc.pre(!(Math.abs(value - wrongValue) <= 1e-12 * Math.abs(value)));
        expect(gradeMath(wrong, answer), `${wrong} for ${answer}`).toBe(false);
      }),
      effort(100),
    );
  });
});
