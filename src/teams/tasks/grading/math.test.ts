import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { golden } from '../../../../test/goldens.js';
import { processorSeconds } from '../../../../test/support/time-and-chance.js';
import { extractBoxed } from './boxed.js';
import { gradeMath } from './math.js';

describe('gradeMath', () => {
  it.each([
    [2.5e-7, '0.00000025', true],
    ['-\\frac{1}{4000000}', -2.5e-7, true],
    [1e21, '1000000000000000000000', true],
    [1.5e22, 1.5e22, true],
    [2.5e-7, '0.00000026', false],
    [Number.NaN, '0', false],
  ])('reads %s as its digits, beside %s', (one, other, expected) => {
    expect([gradeMath(one, other), gradeMath(other, one)]).toEqual([expected, expected]);
  });

  it.each([
    ['07', '7'],
    ['1,234', '1234'],
    ['2,\\!000', '2000'],
    ['\\$32{,}000', '32000'],
    ['18.00', '18'],
    ['$18', '18'],
    ['5 apples', '5'],
    ['5.', '5'],
    ['12345678901234567890.0', '12345678901234567890'],
    ['72', 'Natalia sold 48 + 24 = 72 clips.\n#### 72'],
    ['so it is \\boxed{42}, clearly', '42'],
    ['\\dfrac{1}{2}', '.5'],
    ['½', '\\frac12'],
    ['-\\frac12', '-0.5'],
    ['3\\frac{1}{2}', '7/2'],
    ['50\\%', '\\frac{1}{2}'],
    ['1.5 \\times 10^{-1}', '0.15'],
    ['\\frac{\\sqrt{2}}{2}', '\\frac{1}{\\sqrt2}'],
    ['i\\sqrt{3}', '\\sqrt{-3}'],
    ['\\log_2 8', '3'],
    ['\\binom{5}{2}', '10'],
    ['\\lfloor 3.7 \\rfloor', '3'],
    ['\\sin^2 x + \\cos^2 x', '1'],
    ['(x-1)(x+1)', 'x^2 - 1'],
    ['2^{5000}', '2^{2500} \\cdot 2^{2500}'],
    ['x=1 or x=2', '1, 2'],
    ['1 \\pm \\sqrt{2}', '1-\\sqrt2, 1+\\sqrt2'],
    ['x > 5', '(5,\\infty)'],
    ['2 \\le x < 3', '[2,3)'],
    ['4x + 2 = 10', '2x+1=5'],
    ['C', '\\text{(C)}'],
    ['\\tfrac43', '\\frac43'],
    ['-\\dfrac12', '-0.5'],
    ['9\\ ', '9'],
    ['43_5.\\!', '43_5.'],
    ['\\begin{pmatrix}-1/3\\\\2\\end{pmatrix}', '\\begin{pmatrix} -\\frac{1}{3} \\\\ 2 \\end{pmatrix}'],
    ['\\begin{bmatrix}1&2\\\\\\frac12&0\\end{bmatrix}', '\\begin{pmatrix} 1 & 2 \\\\ 0.5 & 0 \\end{pmatrix}'],
    ['15\\mbox{ cm}^2', '15'],
    ['blue, red', '\\text{red and blue}'],
    ['\\left\\lfloor x \\right\\rfloor', '⌊x⌋'],
    ['\\lfloor x + 1 \\rfloor', '\\lfloor x \\rfloor + 1'],
    ['\\lceil x \\rceil', '-\\lfloor -x \\rfloor'],
    ['\\bigl\\lceil \\sqrt{n} \\bigr\\rceil', '\\lceil n^{1/2} \\rceil'],
    ['2|x|', '\\lvert 2x \\rvert'],
    ['|x||y|', '\\left|xy\\right|'],
    ['\\|3x\\|', '3|x|'],
    ['\\lVert -4 \\rVert', '4'],
    ['\\langle 1, 2 \\rangle', '(1,2)'],
    ['\\biggl( 1, 2 \\biggr]', '(1,2]'],
    ['25^\\circ C', '25'],
    ['25 C^{\\circ}', '25'],
    ['25\\text{ C}^\\circ', '25^{\\circ}\\mathrm{C}'],
    ['25°C', '25\\,^\\circ\\text{F}'],
    ['-40{}^\\circ F', '-40'],
    ['90\\degree', '90'],
    ['X + 1', 'x + 1'],
    ['2N^2', '2n^2'],
    ['Y = 3X', 'y = 3x'],
    ['\\lfloor 4.35 \\cdot 100 \\rfloor', '435'],
    ['\\left\\lfloor\\sqrt{n-5}\\right\\rfloor', '\\lfloor \\sqrt{n - 5} \\rfloor'],
    ['12345678901234567890x + 1', '1 + x \\cdot 12345678901234567890'],
    ['n!(n+1)', '(1+n) \\cdot n!'],
    ['\\binom{5}{0}', '1'],
    ['\\log_2 1', '0'],
    ['f(x+1)', 'f(1+x)'],
    ['f(3) = 7', '7'],
    ["y'' + y = 0", "2y'' + 2y = 0"],
    ['\\sin^{-1} x', '\\arcsin x'],
    ['9\\pi\\text{ cm}^2', '9\\pi'],
    ['(1{,}234, 5)', '(1234,5)'],
    ['\\frac{2a}{2^\\circ}', '\\frac{2a}{2^{\\circ}}'],
    ['\\begin{vmatrix}1&a\\\\(b)&2\\end{vmatrix}', '\\begin{vmatrix}1 & a\\\\ (b) & 2\\end{vmatrix}'],
    ['2 sinx', '2\\sin(x)'],
    ['2 theta', '2\\theta'],
    ['\\overline{A}', '\\overline A'],
    ['\\gcd(12.0, 2.50)', '\\gcd(12, 2.5)'],
    ['\\mathbb{Z}_5', '\\mathbb Z_{5}'],
    ['5 million', '5'],
    ['5\\text{ cm} + 3\\text{ cm}', '8'],
    // Numbers as programs and people write them.
    ['1e3', '1000'],
    ['4.5E-3', '0.0045'],
    ['(1e+3, 1e-07)', '(1000, 10^{-7})'],
    ['3e+2', '2 + 3e'],
    ['3e+2', '300'],
    ['3 x 10^5', '3e5'],
    ['12\\,345\\,678', '12345678'],
    ['1{,}234, 5{,}678', '5678, 1234'],
    ['0.1\\overline{6}', '1/6'],
    ['.\\overline{27}', '3/11'],
    ['⅔', '2/3'],
    ['3¾ cm', '3.75'],
    ['10⁻³x⁴', 'x^4/1000'],
    ['x₁ ⋅ x₂', 'x_1x_2'],
    ['（１，2λ）', '(1, 2\\lambda)'],
    ['€5', '5'],
    ['5cm', '5'],
    ['60 miles per hour', '60'],
    ['9.8 m/s²', '9.8'],
    ['15 square meters', '15\\text{ m}^2'],
    ['\\approx 3.14', '3.14'],
    ['\\langle 0.01a, 1{,}000b \\rangle', '\\langle 0.01a, 1000b \\rangle'],
    ['(2a,1\\,000b)', '(2a, 1000b)'],
    // Without a value near 0.
    ['\\dfrac{2.50a}{ \\lfloor c²/1{,}000 \\rfloor}', '\\frac{2.5a}{\\lfloor c^2/1000 \\rfloor}'],
    ['√10', '\\sqrt{10}'],
    ['2√2.5 + 1', '2\\sqrt{2.5} + 1'],
    ['"3.14"', '3.14'],
    // Plain text, and other spellings of intervals and matrices.
    ['x>=2', 'x \\ge 2'],
    ['-1<=x<2', '[-1,2)'],
    ['2 > x \\ge 1', '[1,2)'],
    ['x<1 or x>2', '(-\\infty,1)\\cup(2,\\infty)'],
    ['x \\in (1,2) \\text{ or } x \\in [3,4]', '[3,4] \\cup (1,2)'],
    ['(-oo, 1) U (2, oo)', '(-\\infty,1)\\cup(2,\\infty)'],
    ['\\left(\\begin{array}{cc}1&2\\\\3&4\\end{array}\\right)', '\\begin{pmatrix}1&2\\\\3&4\\end{pmatrix}'],
    ['\\begin{smallmatrix}1\\\\2\\end{smallmatrix}', '\\begin{Bmatrix}1\\\\2\\\\\\end{Bmatrix}'],
    // Angles, sets, coordinates, factorials of variables.
    ['\\sin 30^\\circ', '\\frac12'],
    ['\\tan\\left(45°\\right)', '1'],
    ['\\sin 30^\\circ', '\\sin 30'],
    ['{3, 2, 1}', '\\{1,2,3\\}'],
    ['\\varnothing', '\\{ \\}'],
    ['∅', '\\emptyset'],
    ['x \\in \\mathbb{R}', '(-\\infty, \\infty)'],
    ['(x, y) = (1, 2)', '(1,2)'],
    ['\\binom{n}{2}', '\\frac{n(n-1)}{2}'],
    ['\\frac{(n+1)!}{n!}', 'n + 1'],
  ])('%s is %s', (prediction, reference) => {
    expect(gradeMath(prediction, reference)).toBe(true);
  });

  it.each([
    ['12345678901234567891', '12345678901234567890'],
    ['3.0000001', '3'],
    ['0.333', '1/3'],
    ['1.41421356', '\\sqrt2'],
    ['2^{5000}', '2^{5001}'],
    ['9^{9^{9}}', '9^{9^{8}}'],
    ['1/0', '2/0'],
    ['\\infty', '-\\infty'],
    ['\\sqrt{x^2}', 'x'],
    ['1 2', '12'],
    ['1,2', '12'],
    ['1,2,2', '1,1,2'],
    ['(1,2)', '(2,1)'],
    ['[1,2]', '(1,2)'],
    ['x < 5', 'x > 5'],
    ['5x - 7y = 1', '5x - 7y = 0'],
    ['0', '5x - 7y + 11z + 4 = 0'],
    ['god', 'dog'],
    ['15\\mbox{ cm}^3', '15\\mbox{ cm}^2'],
    ['\\begin{pmatrix} 1 \\\\ 2 \\end{pmatrix}', '\\begin{pmatrix} 1 & 2 \\end{pmatrix}'],
    ['\\begin{pmatrix} 1 \\\\ 2 \\end{pmatrix}', '\\begin{pmatrix} 1 \\\\ 3 \\end{pmatrix}'],
    ['17x', '17'],
    ['\\lfloor \\sin x \\rfloor', '\\lfloor \\cos x \\rfloor'],
    ['\\lfloor x/3 \\rfloor', '\\lfloor x/4 \\rfloor'],
    ['\\lfloor x/500 \\rfloor', '\\lfloor x/501 \\rfloor'],
    ['\\lfloor x \\rfloor', '\\lfloor x + 0.001 \\rfloor'],
    ['\\lceil \\ln(x + 3) \\rceil', '\\lceil \\sqrt{x + 3} \\rceil'],
    ['\\lfloor x \\rfloor', '\\lceil x \\rceil'],
    ['\\lfloor x \\rfloor', 'x'],
    ['|x - 100|', '100 - x'],
    ['|x| + |y - 9|', '|x| + 9 - y'],
    ['[1,2)', '\\langle 1,2 \\rangle'],
    ['X - x', 'x - X'],
    ['\\lfloor 2.5 \\rfloor', '\\lfloor 2.7 \\rfloor'],
    ['\\gcd(1, 23)', '\\gcd(12, 3)'],
    ['\\foo{1}{23}', '\\foo{12}{3}'],
    ['e^{-50}', 'e^{-60}'],
    ['10^{20} + x', '10^{20} + 2x'],
    ['\\sqrt{2} = 2', '\\sqrt{3} = 7'],
    ['E', 'e'],
    ['I', 'i'],
    ['5\\lfloor x^2/10^9 \\rfloor', '6\\lfloor x^2/10^9 \\rfloor'],
    ['\\lfloor x^2/10^9 \\rfloor', '0'],
    ['\\lfloor x \\rfloor', '\\lfloor x + 10^{-10} \\rfloor'],
    ['\\lceil x \\rceil', '\\lfloor x \\rfloor + 1'],
    ['|x - 5000|', '5000 - x'],
    ['|x/10^{9} - 1|', '1 - x/10^{9}'],
    ['\\sqrt{(x-100)^2}', '100 - x'],
    ['((x-100)^2)^{1/2}', '100 - x'],
    ['y = \\sqrt{(x-100)^2}', 'y = 100 - x'],
    ['f(0)', 'g(0)'],
    ['P(0)', '0'],
    ['f(x + y)', 'f(x) + f(y)'],
    ['f(2) + f(3)', 'f(1) + f(4)'],
    ["f'(x)", "f''(x)"],
    ["A'", "A''"],
    ['12_3 + 4_5', '12_3 + 4_6'],
    ['\\sqrt{12_3}', '\\sqrt{12_4}'],
    ['\\sqrt{10000000001}', '\\sqrt{10000000002}'],
    ['12345678901234\\pi', '12345678901235\\pi'],
    ['2^{1/100000}', '2^{1/100001}'],
    ['\\tanh 20', '\\tanh 21'],
    ['\\cos 0.000001', '\\cos 0.000002'],
    ['10^{20} + x - 10^{20}', '10^{20} + 2x - 10^{20}'],
    ['\\sin^{-1} x', '\\csc x'],
    ['5\\text{ choose }2', '5\\text{ times }2'],
    ['7\\text{ remainder }3', '7\\text{ plus }3'],
    ['2\\operatorname{lcm}(4,6)', '2\\operatorname{gcd}(4,6)'],
    ['4\\,\\text{cis}\\,30^\\circ', '120'],
    ['3\\mathbf{i} + 4\\mathbf{j}', '7'],
    ['2\\mathrm{i}', '2'],
    ['\\mathrm{e}^2', '\\mathrm{e}^3'],
    ['5\\text{ million}', '5 thousand'],
    ['3 | 6', '3 6'],
    ['\\{1,234\\}', '\\{1234\\}'],
    ['2 theta', '2 alpha'],
    ['5 sinx', '5'],
    ['\\foo{ab}{c}', '\\foo{a}{bc}'],
    ['\\frac{\\overline{x}}{yz}', '\\frac{\\overline{x}y}{z}'],
    ['\\overline{AB}C', '\\overline{ABC}'],
    ['\\overline{X} - \\overline{x}', '\\overline{x} - \\overline{X}'],
    ['\\gcd(a,b)', '\\gcd(ab)'],
    ['2x:3', '2:x3'],
    ['(1,2), (3,4)', '(1,2) \\cup (3,4)'],
    ['x<1 or x>2', '(-\\infty,1)\\cup(3,\\infty)'],
    ['√10', '\\sqrt{11}'],
    ['2 > x > 1', '[1,2]'],
    ['\\begin{vmatrix}1&2\\\\3&4\\end{vmatrix}', '\\begin{pmatrix}1&2\\\\3&4\\end{pmatrix}'],
    ['1e3', '10000'],
    ['1e3', '3e'],
    ['1\\,00', '100'],
    ['0.1\\overline{6}', '0.\\overline{16}'],
    ['0.\\overline{3}', '0.3'],
    ['3⅔', '11/4'],
    ['x₁', 'x_2'],
    ['15 cm²', '15 cm³'],
    ['15 square meters', '15\\text{ m}^3'],
    ['\\sin 1^\\circ', '\\sin 2^\\circ'],
    ['\\sin 30^\\circ', '\\frac13'],
    ['{1,2}', '(1,2)'],
    ['{1,234}', '\\{1234\\}'],
    ['\\emptyset', '\\{0\\}'],
    ['\\mathbb{R}', '\\mathbb{Q}'],
    ['(x, y) = (1, 2)', '(2,1)'],
    ['\\binom{n}{2}', '\\frac{n(n+1)}{2}'],
    ['(n+1)!', 'n!'],
    ['', ''],
    [null, '1'],
    [undefined, '1'],
  ])('%s is not %s', (prediction, reference) => {
    expect(gradeMath(prediction, reference)).toBe(false);
  });

  it('compares integers exactly, however they are padded', () => {
    fc.assert(
      fc.property(
        fc.bigInt({ min: -(10n ** 30n), max: 10n ** 30n }),
        fc.nat(3),
        fc.integer({ min: 1, max: 9 }),
        (n, zeros, off) => {
          const sign = n < 0n ? '-' : '';
          const padded = `${sign}${'0'.repeat(zeros)}${n < 0n ? -n : n}`;
          expect(gradeMath(padded, String(n))).toBe(true);
          expect(gradeMath(padded, String(n + BigInt(off)))).toBe(false);
          expect(gradeMath(n.toLocaleString('en-US'), String(n))).toBe(true);
        },
      ),
    );
  });

  it('compares fractions by value', () => {
    const positive = fc.integer({ min: 1, max: 500 });
    fc.assert(
      fc.property(fc.integer({ min: -500, max: 500 }), positive, positive, (a, b, k) => {
        expect(gradeMath(`\\frac{${a * k}}{${b * k}}`, `${a}/${b}`)).toBe(true);
        expect(gradeMath(`\\frac{${a * k + 1}}{${b * k}}`, `${a}/${b}`)).toBe(false);
      }),
    );
  });

  const fragments = [
    '\\frac',
    '{',
    '}',
    '(',
    ')',
    '[',
    ']',
    '\\{',
    '\\}',
    '1',
    '9',
    'x',
    'i',
    ',',
    '^',
    '_',
    '-',
    '+',
    '*',
  ];
  const more = [
    '/',
    '=',
    '<',
    '%',
    '!',
    '|',
    '\\pm',
    '\\cup',
    '\\sqrt',
    '\\sin',
    '\\text{',
    '\\begin{pmatrix}',
    ' ',
    '.',
    '\\',
  ];

  it('never throws, and an answer is always itself', () => {
    const answer = fc.array(fc.constantFrom(...fragments, ...more), { maxLength: 25 }).map((parts) => parts.join(''));
    fc.assert(
      fc.property(fc.oneof(answer, fc.string()), fc.oneof(answer, fc.string()), (a, b) => {
        gradeMath(a, b);
        expect(gradeMath(` ${a}`, a)).toBe(a.trim() !== '' && !/^\s*(?:####|\\boxed\{\s*\})/.test(a));
      }),
      { numRuns: 500 },
    );
  });

  it('takes a bounded time on hostile and on huge input', async () => {
    const long = [...fragments, ...more].map((fragment) => fragment.repeat(Math.floor(1000 / fragment.length)));
    const hostile = [
      ...long,
      `${'9^'.repeat(400)}9`,
      '(99999^999)^9',
      'x_{'.repeat(300),
      `${'1/7+'.repeat(240)}1/7`,
      `5 ${'m'.repeat(900)}`,
      `${' '.repeat(1_000_000)}5`,
      '1'.repeat(5_000_000),
      '\\boxed{'.repeat(300_000),
    ];
    for (const text of hostile) {
      const seconds = await processorSeconds(() => {
        gradeMath(text, '5');
        gradeMath('5', text);
        gradeMath(`${text} `, `${text}+`);
      });
      expect(seconds, text.slice(0, 20)).toBeLessThan(3);
    }
  });
});

describe('gradeMath against the originals', () => {
  it('takes an answer for the same however the original respells it', () => {
    type Case = { text: string; mathd: string };
    // The original loses the row break of a matrix, and the rest is not a matrix.
    const cases = golden<{ cases: Case[] }>('grading/math_normalize').cases.filter(
      ({ text }) => !text.includes('pmatrix'),
    );
    expect(cases).toHaveLength(29);
    expect(cases.filter(({ text, mathd }) => !gradeMath(text, mathd) || !gradeMath(mathd, text))).toEqual([]);
  });

  type Pair = { prediction: string; reference: string; expected: boolean; intended: boolean };
  const grade = (file: string, verdict: 'expected' | 'intended') =>
    golden<{ pairs: Pair[] }>(`grading/${file}`).pairs.map((pair) => ({
      ...pair,
      right: pair[verdict],
      got: gradeMath(pair.prediction, pair.reference),
    }));
  const share = (pairs: readonly { right: boolean; got: boolean }[]) =>
    pairs.filter(({ right, got }) => right === got).length / pairs.length;

  it('accepts nothing that both graders reject, and agrees on at least 97 %', () => {
    const pairs = grade('math_consensus', 'expected');
    expect(pairs.filter(({ right, got }) => got && !right)).toEqual([]);
    expect(share(pairs)).toBeGreaterThanOrEqual(0.97);
  });

  it('is right if they differ', () => {
    const pairs = grade('math_disagreements', 'intended');
    expect(pairs.filter(({ right, got }) => got && !right)).toEqual([]);
    expect(share(pairs)).toBeGreaterThanOrEqual(0.95);
  });
});

describe('extractBoxed', () => {
  it('takes the last box, braces inside included', () => {
    expect(extractBoxed('first \\boxed{1}, no, \\boxed{\\frac{1}{2}}.')).toBe('\\frac{1}{2}');
    expect(extractBoxed('\\boxed{}')).toBe('');
  });

  it('has no answer if there is no box, or a truncated one', () => {
    for (const text of ['', 'boxed{5}', '\\boxed 5', '\\boxed{1} \\boxed{2', null, undefined]) {
      expect(extractBoxed(text)).toBeNull();
    }
  });

  it('is linear on hostile text', async () => {
    const seconds = await processorSeconds(() => {
      extractBoxed('\\boxed{'.repeat(200_000));
      extractBoxed(`\\boxed{${'{'.repeat(1_000_000)}`);
    });
    expect(seconds).toBeLessThan(3);
  });

  it('agrees with the original', () => {
    type Case = { text: string; answer: string | null };
    for (const { text, answer } of golden<{ cases: Case[] }>('grading/boxed').cases) {
      expect(extractBoxed(text), text).toBe(answer);
    }
  });
});
