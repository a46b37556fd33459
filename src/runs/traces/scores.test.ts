import { mkdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { temporaryRoot } from '../../../test/support/tiny-run.js';
import { importTraces } from './import-traces.js';

const root = temporaryRoot();
let count = 0;

const span = (attributes: object = {}) => ({
  ...{ traceId: 't', spanId: 's' },
  attributes: {
    ...{ 'gen_ai.operation.name': 'chat', 'gen_ai.input.messages': 'Price?', 'gen_ai.output.messages': 'Five.' },
    ...attributes,
  },
});
const score = (value: unknown, more: object = {}) => ({ traceId: 't', name: 'correct', value, ...more });
const assessment = (id: string, value: unknown, more: object = {}) => ({
  ...{ assessment_id: id, assessment_name: 'correct', feedback: { value } },
  ...more,
});
const mlflow = (...assessments: object[]) => ({
  ...{ assessments, spans: [{ trace_id: 't', span_id: 'm', attributes: {} }] },
});
const category = { dataType: 'CATEGORICAL' };

/** Rows beside a call, its score, and what is counted as unread. */
const cases: readonly (readonly [string, readonly object[], number | undefined, object])[] = [
  ['the word of a judge', [score('yes')], 1, {}],
  ['the JSON of such a word', [score('"No"')], 0, {}],
  ['a number in a text', [score('0.25')], 0.25, {}],
  ['a category that is such a word', [score(0, { ...category, stringValue: 'yes' })], 1, {}],
  ['another category', [score(1, { ...category, stringValue: 'calm' })], undefined, { score: { count: 1 } }],
  [
    'categories of a run of LangSmith',
    [langsmith({ n: 1, avg: null, values: { calm: 1 } })],
    undefined,
    { score: { count: 1 } },
  ],
  ['a comment of a run of LangSmith', [langsmith({ n: 1, avg: null, values: {} })], undefined, {}],
  ['the label of an evaluation', [evaluation({ label: 'yes' })], 1, {}],
  ['several scores', [score(1, { id: 'a' }), score(0, { id: 'b' }), score(0.5)], 0.5, { several: { count: 2 } }],
  ['equal scores', [score(1), score(1)], 1, {}],
  ['a score in two files', [score(1, { id: 'a' }), score(0), score(1, { id: 'a' })], 0.5, { several: { count: 1 } }],
  ['a score that was changed', [score(1, { id: 'a' }), score(0, { id: 'a' })], 0, {}],
  ['a span that was sent twice', [rewarded(1), rewarded(1), score(0)], 0.5, { several: { count: 1 } }],
  ['a judge of MLflow', [mlflow(assessment('a', 'yes'))], 1, {}],
  ['an annotation of a span that Phoenix saved', [phoenix('annotations.0.annotation')], 1, {}],
  ['an evaluation of a trace that Phoenix saved', [phoenix('trace.evaluations.0.evaluation')], 1, {}],
  ['an assessment that another replaced', [mlflow(assessment('a', 1, { valid: false }), assessment('b', 0))], 0, {}],
];

function langsmith(correct: object) {
  return { id: 'r', trace_id: 't', run_type: 'chain', inputs: {}, feedback_stats: { correct } };
}
function evaluation(fields: object) {
  const named = Object.entries(fields).map(([name, value]) => [`gen_ai.evaluation.score.${name}`, value]);
  const attributes = { 'gen_ai.evaluation.name': 'correct', ...Object.fromEntries(named) };
  return { traceId: 't', spanId: 's', eventName: 'gen_ai.evaluation.result', attributes };
}
function phoenix(prefix: string) {
  const attributes = { [`${prefix}.name`]: 'correct', [`${prefix}.score`]: 1, [`${prefix}.label`]: 'good' };
  return { span_kind: 'CHAIN', context: { trace_id: 't', span_id: 'p' }, status_code: 'OK', attributes };
}
function rewarded(value: number) {
  return { traceId: 't', spanId: 'e', attributes: {}, events: [{ attributes: evaluation({ value }).attributes }] };
}

it.each(cases)('reads as the score of a trace %s', async (_, rows, mean, unread) => {
  const folder = join(root, String(count++));
  await mkdir(folder);
  const file = join(folder, 'traces.jsonl');
  await writeFile(file, [span(), ...rows].map((row) => JSON.stringify(row)).join('\n'));
  const traces = await importTraces(file, { agent: 'buyer' });
  expect(traces.traces).toEqual({ all: 1, kept: 1, scored: mean === undefined ? 0 : 1, mean: mean ?? 0 });
  expect(traces.score).toBe(mean === undefined ? undefined : 'correct');
  expect(Object.keys(traces.unread)).toEqual(Object.keys(unread));
  expect(traces.unread).toMatchObject(unread);
});
