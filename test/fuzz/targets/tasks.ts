/** Task files, and the answers that models write to tasks. */
import { readFileSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { TaskError } from '@drmas/engine/errors';
import { JsonSplitter } from '@drmas/engine/platform';
import { z } from 'zod';
import { file } from '../../../src/teams/tasks/files/file-source.js';
import { extractBoxed } from '../../../src/teams/tasks/grading/boxed.js';
import { gradeMath } from '../../../src/teams/tasks/grading/math.js';
import { exactMatch, tokenF1 } from '../../../src/teams/tasks/grading/question-answering.js';
import { golden } from '../../goldens.js';
import type { Target } from '../target.js';

const schema = z.object({ question: z.string(), answer: z.string() });

/** Loads a task file with this content. */
async function load(content: Uint8Array, extension: string): Promise<void> {
  const path = join(tmpdir(), `drmas-fuzz-${process.pid}.${extension}`);
  writeFileSync(path, content);
  const tasks = await file(path).load('train', schema);
  for (let i = 0; i < Math.min(3, tasks.size); i++) tasks.at(i);
}

const rows = [
  '{"question":"1+1","answer":"2"}',
  '{"question":"\\u00e9\\n","answer":"x","id":"a","metadata":{"level":3}}',
];

const json: Target = {
  name: 'task-json',
  seeds: [rows.join('\n'), `[${rows.join(',\n')}]`, `${rows[0]}\n\n${rows[1]}\n`],
  words: ['[', ']', '{', '}', ',', '"', '\\', '\\"', '\n', '\ufeff', '"question"', '"answer":'],
  inputs: 8_000,
  run: (input) => load(input, 'jsonl'),
};

/** Longer than any input. */
const WHOLE = 1 << 20;

const pieces: Target = {
  ...json,
  name: 'json-pieces',
  inputs: 110_000,
  run(input) {
    const text = input.toString();
    const read = (size: number) => {
      const splitter = new JsonSplitter('x');
      const all: unknown[] = [];
      try {
        for (let at = 0; at < text.length; at += size) all.push(...splitter.push(text.slice(at, at + size)));
        return JSON.stringify([...all, ...splitter.end()]);
      } catch (error) {
        if (error instanceof TaskError) return 'refused';
        throw error;
      }
    };
    if (read(7) !== read(WHOLE)) throw new Error('the same text in other pieces gives other rows');
  },
};

const csv: Target = {
  name: 'task-csv',
  seeds: ['question,answer\n1+1,2\n"a ""b""\nc",d\n', 'question,answer\r\nx,y\r\n', 'id,question,answer\n1,"2,3",4'],
  words: ['"', '""', ',', '\n', '\r\n', '\r', '\t', 'question', '\ufeff', '\u0000'],
  inputs: 8_000,
  run: (input) => load(input, 'csv'),
};

const parquet: Target = {
  name: 'task-parquet',
  seeds: ['gsm8k', 'nq'].map((name) => readFileSync(new URL(`../../fixtures/tables/${name}.parquet`, import.meta.url))),
  words: [],
  inputs: 8_000,
  run: (input) => load(input, 'parquet'),
};

interface Pair {
  readonly prediction: string;
  readonly reference: string;
}
const { pairs } = golden<{ pairs: Pair[] }>('grading/math_consensus');

const grader: Target = {
  name: 'grader',
  seeds: pairs.slice(0, 400).map(({ prediction, reference }) => `${prediction}\u0001${reference}`),
  words: [
    ...['\\frac', '{', '}', '(', ')', '[', ']', '\\lfloor', '\\rfloor', '\\left|', '\\right|', '|', ',', '^', '_'],
    ...['\\sqrt', '\\pm', '\\cup', '\\text{', '\\begin{pmatrix}', '\\\\', '&', '!', '%', '=', '<', '\\le', 'x', '9^9'],
    ...['\\boxed{', '####', '\\circ'],
  ],
  inputs: 150_000,
  run(input) {
    const [answer = '', reference = ''] = input.toString().split('\u0001');
    for (const verdict of [gradeMath(answer, reference), exactMatch(answer, reference)])
      if (typeof verdict !== 'boolean') throw new Error(`a verdict is ${verdict}`);
    if (!(tokenF1(answer, reference) >= 0)) throw new Error('an F1 score is no number');
    extractBoxed(answer);
  },
};

export const tasks = [json, pieces, csv, parquet, grader];
