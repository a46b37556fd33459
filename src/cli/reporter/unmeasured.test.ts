/** Tables print `-` for a number that was not measured, whatever number it is. */
import type { EvaluationEvent, RunEvent, ScoredEvaluation, Step } from '@drmas/engine/events';
import { describe, expect, it } from 'vitest';
import { run } from '../../../test/fixtures/run-events.js';
import { summariseRun, summariseVariants } from '../../runs/analysis/ablation-summary.js';
import { metricDifferences, pairedDifferences } from '../../runs/analysis/paired-interval.js';
import { ablationLines } from './ablation-printer.js';
import { comparisonLines } from './comparison/comparison-printer.js';
import { emptyHistory, evaluationLine, measureLines, remember, stepLines } from './progress-printer.js';
import { evaluationLines } from './score-printer.js';
import { summaryLines } from './summary-printer.js';

/** Numbers that count or place something; all others are measurements. */
const COUNTS = /^(step|steps|seed|tasks|samples|k|turns|rewardedTurns|played|failed|episodes|level|seconds)$/;

/** The events with the measurements of one name, or of all, as a log with null has them. */
function unmeasured<Value>(value: Value, name?: string): Value {
  const change = (inner: unknown, key: string): unknown => {
    if (typeof inner === 'number') return COUNTS.test(key) || (name ?? key) !== key ? inner : Number.NaN;
    if (typeof inner !== 'object' || inner === null) return inner;
    if (Array.isArray(inner)) return inner.map((each) => change(each, key));
    return Object.fromEntries(Object.entries(inner).map(([below, each]) => [below, change(each, below)]));
  };
  return change(value, '') as Value;
}

function namesIn(value: unknown): string[] {
  if (typeof value !== 'object' || value === null) return [];
  return Object.entries(value).flatMap(([key, inner]) =>
    typeof inner === 'number' && !COUNTS.test(key) ? [key] : namesIn(inner),
  );
}

const printed: Readonly<Record<string, (events: readonly RunEvent[]) => string[]>> = {
  'the report of a run': (events) => summaryLines(events.reduce(remember, emptyHistory()), 10, 100),
  'an ablation': (events) => ablationLines(ablationOf(events), 100),
  'a comparison': (events) => comparisonLines(ablationOf(events), 100),
  'an evaluation': (events) =>
    events.flatMap((event) =>
      event.type === 'evaluation'
        ? [
            evaluationLine(event, 100),
            evaluationLine(event, 100, 'reward'),
            ...measureLines(event, 100),
            ...evaluationLines(event as EvaluationEvent as ScoredEvaluation, 100),
          ]
        : [],
    ),
  'a step': (events) =>
    events.flatMap((event) => (event.type === 'step' ? stepLines(event as Step, 9, new Set(), 1, 100) : [])),
};

function ablationOf(events: readonly RunEvent[]) {
  const variants = ['grpo', 'drmas'];
  const runs = variants.map((variant) => summariseRun({ name: variant, variant, seed: 1 }, events));
  return {
    directory: 'runs/x',
    baseline: 'grpo',
    runs,
    variants: summariseVariants(runs, variants),
    differences: pairedDifferences(runs, variants, 'grpo'),
    metricDifferences: metricDifferences(runs, variants, 'grpo'),
  };
}

describe.each(Object.entries(printed))('%s', (_, lines) => {
  it.each([undefined, ...new Set(namesIn(run))])('without %s', (name) => {
    const text = lines(unmeasured(run, name)).join('\n');
    expect(text).not.toBe('');
    expect(text).not.toMatch(/NaN|undefined|Infinity|\binf\b/);
  });
});
