import { type Answer, type Quantity, quantity, readAnswer, withoutLastZeros } from './answer.js';
import { extractBoxed } from './boxed.js';
import { cleanAnswer, magnitude, unitPower } from './clean.js';
import { type Expression, hasVariables, isNamedFunction, nodesOf } from './expression.js';
import {
  agree,
  type Complex,
  everyPartShows,
  FAR_POINTS,
  type Place,
  POINTS,
  quotient,
  scaled,
  sizeOf,
  valueAt,
} from './numeric.js';
import { equalRationals, exactValue, proportionalByAlgebra, type Rational, sameAlgebra } from './rational.js';

/** The longest answer in characters that is parsed; longer ones are only compared as texts. */
const MAX_LENGTH = 1000;

/**
 * Whether an answer to a mathematical question equals the reference: numbers in any spelling ("07", "1,234", "\frac12",
 * "50%"), expressions by value, lists and sets in any order, tuples, intervals and matrices entry by entry, equations
 * up to a factor, words without regard to case. It reads LaTeX and plain text; in a longer text the last `\boxed{...}`
 * counts, or the text after GSM8K's `####`. A missing prediction is wrong. The function never throws, and its time is
 * bounded for every input.
 *
 * @example
 * ```ts
 * import { gradeMath } from 'drmas';
 *
 * gradeMath('1/2', '0.5'); // true
 * ```
 */
export function gradeMath(
  prediction: string | number | null | undefined,
  reference: string | number | null | undefined,
): boolean {
  if (prediction === null || prediction === undefined || reference === null || reference === undefined) return false;
  const [answer, target] = [finalAnswer(String(prediction)), finalAnswer(String(reference))];
  if (answer === '' || target === '') return false;
  if (answer === target) return true;
  if (answer.length > MAX_LENGTH || target.length > MAX_LENGTH) return false;
  if (differ(unitPower(answer), unitPower(target)) || differ(magnitude(answer), magnitude(target))) return false;
  if (sameReading(answer, target)) return true;
  const [lower, targetLower] = [inOneCase(answer), inOneCase(target)];
  return (lower !== answer || targetLower !== target) && sameReading(lower, targetLower);
}

const differ = (one: string | undefined, other: string | undefined): boolean =>
  one !== undefined && other !== undefined && one !== other;

function sameReading(answer: string, target: string): boolean {
  // An expression without a value, as x / ⌊x / 10^9⌋ near 0, equals itself in another spelling too.
  const spelled = spelling(answer);
  if (spelled !== '' && spelled === spelling(target)) return true;
  const targets = readings(target);
  return readings(answer).some((one) => targets.some((other) => same(one, other)));
}

/**
 * The text with its variables in lower case, since X and x are spellings of one variable. If an answer has both, they
 * are two variables, and the text stays as it is; e and i are not variables.
 */
function inOneCase(text: string): string {
  const variable = /(?<![A-Za-z\\])(?:\\[A-Za-z]+|[A-DF-HJ-Z](?![A-Za-z]))/g;
  const lower = new Set(text.match(/(?<![A-Za-z\\])[a-z](?![A-Za-z])/g));
  return text.replace(variable, (name) =>
    name.startsWith('\\') || lower.has(name.toLowerCase()) ? name : name.toLowerCase(),
  );
}

function finalAnswer(text: string): string {
  return (extractBoxed(text) ?? text.split('####').at(-1) ?? '').trim();
}

/**
 * The readings of an answer: "1,234" counts both as a number and as a list, "3e+2" both as 300 and with the constant e,
 * and degrees both as their number and, in \sin 30^\circ, as an angle.
 */
function readings(answer: string): Answer[] {
  const cleaned = cleanAnswer(answer);
  const angles = TRIGONOMETRY.test(cleaned) ? [cleanAnswer(answer, DEGREE)] : [];
  const texts = [joinThousands(cleaned), cleaned, ...angles].flatMap((text) => [withPowersOfTen(text), text]);
  return [...new Set(texts)].map((text) => readAnswer(text));
}

const TRIGONOMETRY = /\\(?:sin|cos|tan|cot|sec|csc)(?![A-Za-z])/;
const DEGREE = '\\frac{\\pi}{180}';

/** 2.5e-7, as programs write it, as 2.5 * 10^{-7}. */
const withPowersOfTen = (text: string): string =>
  text.replace(/(?<![A-Za-z\d.\\_^])(\d+(?:\.\d*)?|\.\d+)e([+-]?\d{1,4})(?![A-Za-z\d.^])/gi, '($1 * 10^{$2})');

const spelling = (answer: string): string =>
  withoutLastZeros(joinThousands(cleanAnswer(answer))).replace(/\s*([^\sA-Za-z\d])\s*/g, '$1');

/** Removes the commas between thousands, except in a text with brackets, where a comma separates. */
function joinThousands(text: string): string {
  if (/[([]|\\\{|^\{/.test(text)) return text;
  return text.replace(/(?<![\d.,])\d{1,3}(?:(?:,|,\s*\\!\s*|\\!,\s*)\d{3})+(?![\d,])/g, (digits) =>
    digits.replace(/[,\s\\!]/g, ''),
  );
}

function same(a: Answer, b: Answer): boolean {
  if (a.type === 'quantity' && b.type === 'quantity') return sameQuantity(a, b);
  if (a.type === 'words' && b.type === 'words') return sameWords(a.text, b.text);
  if (a.type === 'list' && b.type === 'list') return sameMembers(a.items, b.items);
  if (a.type === 'union' && (b.type === 'union' || isAlternatives(b))) return sameMembers(a.items, b.items);
  if (b.type === 'union' && isAlternatives(a)) return sameMembers(a.items, b.items);
  if (a.type === 'tuple' && b.type === 'tuple') {
    return a.open === b.open && a.close === b.close && !otherIndex(a, b) && sameRow(a.items, b.items);
  }
  if (a.type === 'matrix' && b.type === 'matrix') {
    return a.rows.length === b.rows.length && a.rows.every((row, r) => sameRow(row, b.rows[r] ?? []));
  }
  if (a.type === 'relation' && b.type === 'relation') return sameRelation(a, b);
  if (a.type === 'relation') return sameAssigned(a, b);
  if (b.type === 'relation') return sameAssigned(b, a);
  return choice(a) !== undefined && choice(a) === choice(b);
}

/** Whether an answer lists intervals of a variable, as in x < 1 or x > 2. */
const isAlternatives = (answer: Answer): answer is Extract<Answer, { type: 'list' }> =>
  answer.type === 'list' && answer.items.every((item) => item.type === 'tuple' && item.variable !== undefined);

type Tuple = Extract<Answer, { type: 'tuple' }>;

/** Whether two intervals are about variables with different indices: x_1 > 5 says nothing about x_2. */
const otherIndex = ({ variable: a }: Tuple, { variable: b }: Tuple): boolean =>
  differ(a, b) && `${a}${b}`.includes('_');

function sameRow(a: readonly Answer[], b: readonly Answer[]): boolean {
  return a.length === b.length && a.every((item, i) => same(item, b[i] as Answer));
}

function sameMembers(a: readonly Answer[], b: readonly Answer[]): boolean {
  if (a.length !== b.length) return false;
  const left = [...b];
  return a.every((item) => {
    const match = left.findIndex((other) => same(item, other));
    if (match >= 0) left.splice(match, 1);
    return match >= 0;
  });
}

/** Compares quantities; a percentage equals both its number and a hundredth of it, since people write either. */
function sameQuantity(a: Quantity, b: Quantity): boolean {
  if (a.percent && !b.percent) return sameValue(a, b) || sameValue(hundredth(a), b);
  if (b.percent && !a.percent) return sameValue(a, b) || sameValue(a, hundredth(b));
  return sameValue(a, b);
}

const HUNDRED: Expression = { type: 'number', digits: '100' };
const hundredth = ({ expression }: Quantity): Quantity =>
  quantity({ type: 'binary', operator: '/', left: expression, right: HUNDRED });

function sameValue(a: Quantity, b: Quantity): boolean {
  if (!sameBases(basesOf(a.expression), basesOf(b.expression))) return false;
  if (a.exact !== undefined && b.exact !== undefined) return equalRationals(a.exact, b.exact);
  let agreed = 0;
  for (let point = 0; point < POINTS; point++) {
    const [left, right] = [a.values[point], b.values[point]];
    if (left === undefined || right === undefined) continue;
    const [sizeA, sizeB] = [sizeOf(left), sizeOf(right)];
    // Without a value, or too large for a double, there is nothing to compare.
    if (Number.isNaN(sizeA + sizeB) || (sizeA === Number.POSITIVE_INFINITY && sizeB === sizeA)) continue;
    if (!agree(left, right)) return false;
    agreed++;
  }
  if (sameAlgebra(a.expression, b.expression)) return true;
  return agreed > 0 && sameFarAway(a.expression, b.expression) && sameParts(a.expression, b.expression);
}

/** Whether equal values of two expressions say that they are equal: every number shows, the floors are the same. */
const sameParts = (a: Expression, b: Expression) =>
  sameFloors(a, b, ONE) && everyPartShows(a, false) && everyPartShows(b, false);

const ONE: Complex = { re: 1, im: 0 };

/** Near 0 most floors are 0, and |x - 100| and the root of (x - 100)^2 are 100 - x: they must agree far from 0 too. */
function sameFarAway(a: Expression, b: Expression): boolean {
  return farPlaces([a, b]).every((place) => {
    const [left, right] = [valueAt(a, place), valueAt(b, place)];
    return !isUsable(place, left, right) || agree(left, right);
  });
}

/** A place far from 0, and whether values that are not real count there: there are conventions for roots. */
interface FarPlace extends Place {
  readonly complex: boolean;
}

const isUsable = ({ complex }: FarPlace, ...values: readonly Complex[]): boolean =>
  values.every((value) => Number.isFinite(sizeOf(value)) && (complex || value.im === 0));

const BARS = new Set(['abs', 'floor', 'ceiling']);
const INVERSES = new Set(['root', 'ln', 'log', 'arcsin', 'arccos', 'arctan']);

/** The places far from 0 at which to compare expressions with functions that hide their operands; none for others. */
function farPlaces(expressions: readonly Expression[]): FarPlace[] {
  const nodes = expressions.flatMap(nodesOf);
  const has = (names: ReadonlySet<string>) => nodes.some((node) => node.type === 'call' && names.has(node.name));
  const bars = has(BARS);
  const roots = has(INVERSES) || nodes.some(isRoot);
  if ((!bars && !roots) || !expressions.some(hasVariables)) return [];
  const complex = !roots || nodes.some((node) => node.type === 'name' && node.name === 'i');
  const reach = reachOf(nodes);
  return Array.from({ length: FAR_POINTS }, (_, n) => ({ point: POINTS + n, reach, complex, positive: !bars }));
}

/** Whether a power has an exponent that is no whole number, as in (x^2)^{1/2}. */
const isRoot = (node: Expression): boolean =>
  node.type === 'binary' && node.operator === '^' && !isWhole(exactValue(node.right));

const isWhole = (value: Rational | undefined): boolean =>
  value !== undefined && value.numerator % value.denominator === 0n;

/** A distance far beyond all constants of the expressions and their inverses. */
function reachOf(nodes: readonly Expression[]): number {
  let largest = 20;
  for (const node of nodes) {
    if (node.type !== 'number' && (node.type !== 'binary' || hasVariables(node))) continue;
    const size = sizeOf(valueAt(node, { point: 0 }));
    for (const each of [size, 1 / size]) if (each < MAX_REACH && each > largest) largest = each;
  }
  return 100 * largest;
}

const MAX_REACH = 1e15;

/**
 * Whether the operands of two expressions' floors differ by whole numbers, or in sign, and whether the expressions
 * are equal around their floors: 5⌊x/1000⌋ and 6⌊x/1000⌋ are both 0 near 0. An expression without floors can equal
 * only floors of numbers.
 */
function sameFloors(a: Expression, b: Expression, ratio: Complex): boolean {
  const [insideA, insideB] = [insideFloors(a), insideFloors(b)];
  if (insideA.length === 0 || insideB.length === 0) return [...insideA, ...insideB].every((x) => !hasVariables(x));
  const [rowsA, rowsB] = [insideA.map(valuesNear), insideB.map(valuesNear)];
  const among = (rows: readonly number[][]) => (row: number[]) => rows.some((other) => wholeApart(row, other));
  if (!rowsA.every(among(rowsB)) || !rowsB.every(among(rowsA))) return false;
  return Array.from({ length: POINTS }, (_, point) => ({ point, smooth: true })).every((place) =>
    agree(valueAt(a, place), scaled(valueAt(b, place), ratio)),
  );
}

const insideFloors = (expression: Expression): Expression[] =>
  nodesOf(expression).flatMap((node) =>
    node.type === 'call' && (node.name === 'floor' || node.name === 'ceiling') ? node.arguments : [],
  );

const valuesNear = (expression: Expression): number[] =>
  Array.from({ length: POINTS }, (_, point) => valueAt(expression, { point }).re);

function wholeApart(a: readonly number[], b: readonly number[]): boolean {
  return [1, -1].some((sign) => {
    const apart = a.map((value, i) => value - sign * (b[i] as number));
    const whole = Math.round(apart[0] as number);
    return apart.every((distance) => Math.abs(distance - whole) < 1e-9 * Math.max(1, Math.abs(whole)));
  });
}

/** The numbers with a base, in order of size: 12_3 as `12_3`. */
const basesOf = (expression: Expression): string[] =>
  nodesOf(expression)
    .flatMap((node) =>
      node.type === 'number' && node.base !== undefined
        ? [`${node.digits.replace(/^0+(?=\d)|\.0*$/g, '')}_${node.base}`]
        : [],
    )
    .sort();

/** Whether numbers have the same bases. 204 for 204_5 omits the base, but with another base it is another number. */
function sameBases(a: readonly string[], b: readonly string[]): boolean {
  if (a.length === 0 || b.length === 0) return a.length + b.length <= 1;
  return JSON.stringify(a) === JSON.stringify(b);
}

type Relation = Extract<Answer, { type: 'relation' }>;

/** Compares equations: their sides in either order, or one equation as a multiple of the other. */
function sameRelation(a: Relation, b: Relation): boolean {
  const symmetric = a.operator === '=' || a.operator === '\\ne';
  if (a.operator !== b.operator) return false;
  if (same(a.left, b.left) && same(a.right, b.right)) return true;
  if (!symmetric) return false;
  if (same(a.left, b.right) && same(a.right, b.left)) return true;
  return proportional(differenceOf(a), differenceOf(b));
}

function differenceOf({ left, right }: Relation): Quantity | undefined {
  if (left.type !== 'quantity' || right.type !== 'quantity') return undefined;
  return quantity({ type: 'binary', operator: '-', left: left.expression, right: right.expression });
}

function proportional(a: Quantity | undefined, b: Quantity | undefined): boolean {
  if (a === undefined || b === undefined || a.exact !== undefined || b.exact !== undefined) return false;
  if (!sameBases(basesOf(a.expression), basesOf(b.expression))) return false;
  const ratios = a.values.map((value, point) => quotient(value, b.values[point] ?? value));
  const [first] = ratios;
  // Equations between numbers have no unknown, so that any two are proportional.
  if (first === undefined || a.values.every((value) => agree(value, a.values[0] ?? value))) return false;
  if (Math.hypot(first.re, first.im) <= 1e-6 || !ratios.every((ratio) => agree(ratio, first))) return false;
  if (proportionalByAlgebra(a.expression, b.expression)) return true;
  const far = farPlaces([a.expression, b.expression]).every((place) => {
    const [left, right] = [valueAt(a.expression, place), valueAt(b.expression, place)];
    return !isUsable(place, left, right) || agree(quotient(left, right), first);
  });
  if (!far || !sameFloors(a.expression, b.expression, first)) return false;
  return everyPartShows(a.expression, true) && everyPartShows(b.expression, true);
}

/** Compares an equation such as x = 5 or f(x) = 5 with a value: it answers the question for x as 5 does. */
function sameAssigned({ operator, left, right }: Relation, value: Answer): boolean {
  if (operator !== '=') return false;
  return (isNamed(left) && same(right, value)) || (isNamed(right) && same(left, value));
}

function isNamed(answer: Answer): boolean {
  if (answer.type === 'tuple') return answer.items.every(isNamed);
  if (answer.type !== 'quantity') return answer.type === 'words';
  const { expression } = answer;
  if (expression.type === 'name') return true;
  if (expression.type === 'call') return isNamedFunction(expression.name);
  return (
    expression.type === 'binary' &&
    expression.operator === '*' &&
    expression.left.type === 'name' &&
    expression.right.type === 'name'
  );
}

function sameWords(a: string, b: string): boolean {
  const bare = (text: string) => text.replace(/^\((.+)\)$/, '$1');
  return bare(a) !== '' && bare(a) === bare(b);
}

/** The letter of a multiple-choice answer: C and (C) are one. */
function choice(answer: Answer): string | undefined {
  if (answer.type === 'words') return /^\(?([a-z])\)?$/.exec(answer.text)?.[1];
  const name = answer.type === 'quantity' && answer.expression.type === 'name' ? answer.expression.name : undefined;
  return name?.length === 1 ? name.toLowerCase() : undefined;
}
