import { type Answer, type Quantity, quantity, readAnswer } from './answer.js';
import { extractBoxed } from './boxed.js';
import { cleanAnswer, unitPower } from './clean.js';
import { callsOf, type Expression } from './expression.js';
import { agree, FAR_POINTS, POINTS, quotient, valueAt } from './numeric.js';
import { equalRationals } from './rational.js';

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
  const answer = finalAnswer(String(prediction));
  const target = finalAnswer(String(reference));
  if (answer === '' || target === '') return false;
  if (answer === target) return true;
  if (answer.length > MAX_LENGTH || target.length > MAX_LENGTH) return false;
  const [power, targetPower] = [unitPower(answer), unitPower(target)];
  if (power !== undefined && targetPower !== undefined && power !== targetPower) return false;
  if (sameReading(answer, target)) return true;
  const [lower, targetLower] = [inOneCase(answer), inOneCase(target)];
  return (lower !== answer || targetLower !== target) && sameReading(lower, targetLower);
}

function sameReading(answer: string, target: string): boolean {
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

/** The readings of an answer: "1,234" counts both as a number and as a list. */
function readings(answer: string): Answer[] {
  const cleaned = cleanAnswer(answer);
  const joined = joinThousands(cleaned);
  return joined === cleaned ? [readAnswer(cleaned)] : [readAnswer(joined), readAnswer(cleaned)];
}

/** Removes the commas between thousands, except in a text with round or square brackets, where a comma separates. */
function joinThousands(text: string): string {
  if (/[([]/.test(text)) return text;
  return text.replace(/(?<![\d.,])\d{1,3}(?:(?:,|,\s*\\!\s*|\\!,\s*)\d{3})+(?![\d,])/g, (digits) =>
    digits.replace(/[,\s\\!]/g, ''),
  );
}

function same(a: Answer, b: Answer): boolean {
  if (a.type === 'quantity' && b.type === 'quantity') return sameQuantity(a, b);
  if (a.type === 'words' && b.type === 'words') return sameWords(a.text, b.text);
  if (a.type === 'list' && b.type === 'list') return sameMembers(a.items, b.items);
  if (a.type === 'union' && b.type === 'union') return sameMembers(a.items, b.items);
  if (a.type === 'tuple' && b.type === 'tuple') {
    return a.open === b.open && a.close === b.close && sameRow(a.items, b.items);
  }
  if (a.type === 'matrix' && b.type === 'matrix') {
    return a.rows.length === b.rows.length && a.rows.every((row, r) => sameRow(row, b.rows[r] ?? []));
  }
  if (a.type === 'relation' && b.type === 'relation') return sameRelation(a, b);
  if (a.type === 'relation') return sameAssigned(a, b);
  if (b.type === 'relation') return sameAssigned(b, a);
  return choice(a) !== undefined && choice(a) === choice(b);
}

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
  // 204 for 204_5 omits the base; with another base, or a sign, it is another number.
  const [baseA, baseB] = [baseOf(a.expression), baseOf(b.expression)];
  if (baseA !== undefined && baseB !== undefined && baseA !== baseB) return false;
  if (a.exact !== undefined && b.exact !== undefined) return equalRationals(a.exact, b.exact);
  let agreed = 0;
  for (let point = 0; point < POINTS; point++) {
    const [left, right] = [a.values[point], b.values[point]];
    if (left === undefined || right === undefined || Number.isNaN(left.re + right.re)) continue;
    if (!agree(left, right)) return false;
    if (left.absorbs || right.absorbs) return sameForm(a.expression, b.expression);
    agreed++;
  }
  return agreed > 0 && ((!a.broken && !b.broken) || sameBroken(a.expression, b.expression));
}

/** Whether two expressions are written alike. */
const sameForm = (a: Expression, b: Expression) => JSON.stringify(a) === JSON.stringify(b);

/**
 * Near 0 most floors are 0, and |x - 100| is 100 - x: such expressions must agree far from 0 too. The operands of
 * their floors must also differ by whole numbers, or in sign: a small shift shows at few points.
 */
function sameBroken(a: Expression, b: Expression): boolean {
  for (let point = POINTS; point < POINTS + FAR_POINTS; point++) {
    const [left, right] = [valueAt(a, point), valueAt(b, point)];
    const finite = Number.isFinite(left.re + left.im) && Number.isFinite(right.re + right.im);
    if (finite && !agree(left, right)) return false;
  }
  return sameFloors(a, b);
}

/** Whether the operands of the floors of two expressions differ by whole numbers, or in sign. */
function sameFloors(a: Expression, b: Expression): boolean {
  const [insideA, insideB] = [insideFloors(a), insideFloors(b)];
  if (insideA.length === 0 || insideB.length === 0) return true;
  const among = (rows: readonly number[][]) => (row: number[]) => rows.some((other) => wholeApart(row, other));
  return insideA.every(among(insideB)) && insideB.every(among(insideA));
}

/** The operands of floors and ceilings, at the first points. */
const insideFloors = (expression: Expression): number[][] =>
  callsOf(['floor', 'ceiling'], expression).flatMap(({ arguments: [inside] }) =>
    inside === undefined ? [] : [Array.from({ length: POINTS }, (_, point) => valueAt(inside, point).re)],
  );

function wholeApart(a: readonly number[], b: readonly number[]): boolean {
  return [1, -1].some((sign) => {
    const apart = a.map((value, i) => value - sign * (b[i] as number));
    const whole = Math.round(apart[0] as number);
    return apart.every((distance) => Math.abs(distance - whole) < 1e-9 * Math.max(1, Math.abs(whole)));
  });
}

function baseOf(expression: Expression): string | undefined {
  if (expression.type === 'number') return expression.base;
  return expression.type === 'binary' ? (baseOf(expression.left) ?? baseOf(expression.right)) : undefined;
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
  if ([...a.values, ...b.values].some(({ absorbs }) => absorbs)) return false;
  const points = a.broken || b.broken ? POINTS + FAR_POINTS : POINTS;
  const rows = [a, b].map(({ expression }) => Array.from({ length: points }, (_, n) => valueAt(expression, n)));
  const [left = [], right = []] = rows;
  const [first, ...others] = left.map((value, point) => quotient(value, right[point] ?? value));
  // Equations between numbers have no unknown, so that any two are proportional.
  if (first === undefined || left.every((value) => agree(value, left[0] ?? value))) return false;
  return (
    Math.hypot(first.re, first.im) > 1e-6 &&
    others.every((ratio) => agree(ratio, first)) &&
    sameFloors(a.expression, b.expression)
  );
}

/** Compares an equation such as x = 5 or f(x) = 5 with a value: it answers the question for x as 5 does. */
function sameAssigned({ operator, left, right }: Relation, value: Answer): boolean {
  if (operator !== '=') return false;
  return (isNamed(left) && same(right, value)) || (isNamed(right) && same(left, value));
}

function isNamed(answer: Answer): boolean {
  if (answer.type !== 'quantity') return answer.type === 'words';
  const { expression } = answer;
  if (expression.type === 'name') return true;
  return (
    expression.type === 'binary' &&
    expression.operator === '*' &&
    expression.left.type === 'name' &&
    expression.right.type === 'name'
  );
}

function sameWords(a: string, b: string): boolean {
  // A point or comma between digits belongs to a number.
  const bare = (text: string) => text.replace(/^\((.+)\)$/, '$1').replace(/(?<!\d)[.,;:'"]|[.,;:'"](?!\d)/g, '');
  return bare(a) !== '' && bare(a) === bare(b);
}

/** The letter of a multiple-choice answer: C and (C) are one. */
function choice(answer: Answer): string | undefined {
  if (answer.type === 'words') return /^\(?([a-z])\)?$/.exec(answer.text)?.[1];
  const name = answer.type === 'quantity' && answer.expression.type === 'name' ? answer.expression.name : undefined;
  return name?.length === 1 ? name.toLowerCase() : undefined;
}
