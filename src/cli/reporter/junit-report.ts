import type { ScoredEvaluation } from '@drmas/engine/events';
import { percent } from './text-layout.js';

/**
 * @param subject The run or the recipe, as it was typed
 * @param atLeast From 0 to 1
 */
export function junitReport(
  subject: string,
  { averageAtK, samples, tasks, seconds }: Pick<ScoredEvaluation, 'averageAtK' | 'samples' | 'tasks' | 'seconds'>,
  atLeast: number,
): string {
  const passed = averageAtK >= atLeast;
  const says = `avg@${samples} is ${percent(averageAtK)} on ${tasks} held-out tasks`;
  const failure = `<failure message="${escaped(`${says}, below ${percent(atLeast)}`)}"/>`;
  const name = escaped(`avg@${samples} is at least ${percent(atLeast)}`);
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
