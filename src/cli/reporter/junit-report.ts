import type { ScoredEvaluation } from '@drmas/engine/events';
import { differ } from '@drmas/engine/math';
import { percent } from './text-layout.js';

type Judged = Pick<ScoredEvaluation, 'averageAtK' | 'samples'>;

/** Whether an evaluation scores `atLeast`, from 0 to 1, but for the rounding of a mean; and its score in words. */
export function verdictOf({ averageAtK, samples }: Judged, atLeast: number) {
  const isEqual = Number.isFinite(averageAtK) && !differ(averageAtK, atLeast);
  let digits = 1; // as many as tell the score from the limit
  while (!isEqual && digits < 9 && percent(averageAtK, digits) === percent(atLeast, digits)) digits++;
  return { passed: isEqual || averageAtK >= atLeast, says: `avg@${samples} is ${percent(averageAtK, digits)}` };
}

/** A limit as it was typed, in percent. */
export const limitText = (atLeast: number) => `${Number((100 * atLeast).toFixed(9))} %`;

/**
 * @param subject The run or the recipe, as it was typed
 * @param atLeast From 0 to 1
 */
export function junitReport(
  subject: string,
  { tasks, seconds, ...event }: Judged & Pick<ScoredEvaluation, 'tasks' | 'seconds'>,
  atLeast: number,
): string {
  const verdict = verdictOf(event, atLeast);
  const { passed } = verdict;
  const says = `${verdict.says} on ${tasks} held-out tasks`;
  const failure = `<failure message="${escaped(`${says}, below ${limitText(atLeast)}`)}"/>`;
  const name = escaped(`avg@${event.samples} is at least ${limitText(atLeast)}`);
  const time = seconds.toFixed(3);
  return [
    '<?xml version="1.0" encoding="UTF-8"?>',
    `<testsuites tests="1" failures="${passed ? 0 : 1}" time="${time}">`,
    `  <testsuite name="drmas evaluate" tests="1" failures="${passed ? 0 : 1}" time="${time}">`,
    `    <testcase classname="${escaped(subject)}" name="${name}" time="${time}">`,
    `      ${passed ? `<system-out>${escaped(says)}</system-out>` : failure}`,
    '    </testcase>',
    '  </testsuite>',
    '</testsuites>',
    '',
  ].join('\n');
}

const entities: Readonly<Record<string, string>> = { '&': '&amp;', '<': '&lt;', '>': '&gt;', '"': '&quot;' };

/** A text as the content of XML or of an attribute, without the control characters that XML forbids. */
function escaped(text: string): string {
  return text.replaceAll(/\p{Cc}/gu, ' ').replaceAll(/[&<>"]/g, (character) => entities[character] ?? '');
}
