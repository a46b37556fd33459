import type { RandomStream } from '@drmas/engine/math';

export interface Step {
  readonly operator: '+' | '-' | '*';
  /** The operand: one digit, at least 2 after `*`. */
  readonly operand: number;
}

export interface Chain {
  readonly start: number;
  readonly steps: readonly Step[];
}

export const twoDigits = (total: number): string => String(total).padStart(2, '0');

export function apply(total: number, { operator, operand }: Step): number {
  if (operator === '+') return total + operand;
  return operator === '-' ? total - operand : total * operand;
}

export const result = ({ start, steps }: Chain): number => steps.reduce(apply, start);

/** The text of step number `index`: a letter, then the operation. */
export const stepText = ({ operator, operand }: Step, index: number): string =>
  `${String.fromCharCode('a'.charCodeAt(0) + index)}${operator}${operand}`;

export const chainQuestion = ({ start, steps }: Chain): string => twoDigits(start) + steps.map(stepText).join('');

/**
 * Draws a random chain. A step that would leave 0..top is drawn again, operator and operand, so `*` is rarer than its
 * share of the draws, one in five.
 */
export function drawChain(random: RandomStream, length: number, top: number): Chain {
  const start = random.integer(1, top);
  const steps: Step[] = [];
  let total = start;
  while (steps.length < length) {
    const operator = random.pick<Step['operator']>(['+', '+', '-', '-', '*']);
    const step = { operator, operand: random.integer(operator === '*' ? 2 : 1, 9) };
    const next = apply(total, step);
    if (next < 0 || next > top) continue;
    steps.push(step);
    total = next;
  }
  return { start, steps };
}
