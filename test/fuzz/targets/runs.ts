/** The files in the directory of a run, or in logs of others: events, recipe.json, rollouts. */
import { writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { readEvents } from '../../../src/method/store/event-log.js';
import { parseRecord } from '../../../src/method/store/run-record.js';
import { collectLog } from '../../../src/runs/studies/inspect/collect-turns.js';
import { inspect } from '../../../src/runs/studies/inspect/inspect-log.js';
import { run } from '../../fixtures/run-events.js';
import { memoryFiles } from '../../support/memory-files.js';
import type { Target } from '../target.js';

const events: Target = {
  name: 'events',
  seeds: run.slice(0, 12).map((event) => `${JSON.stringify(event)}\n`),
  words: ['\n', '"type":"step"', '"agents":null', '"policies":[]', 'null', '{', '}', '"step":'],
  inputs: 110_000,
  run: (input) => readEvents(memoryFiles(new Map([['events.jsonl', input]])), 'events.jsonl'),
};

const record: Target = {
  name: 'recipe-json',
  seeds: [
    JSON.stringify({
      version: 1,
      recipe: { source: 'math', overrides: ['seed=1'], codeHash: 'x' },
      resolved: { name: 'math', seed: 1 },
      acceptedChanges: [{ time: '2026-11-20T00:00:00Z', codeHash: 'y', step: 3 }],
    }),
  ],
  words: ['version', 'resolved', 'overrides', 'null'],
  inputs: 60_000,
  run: (input) => parseRecord(input.toString(), 'recipe.json'),
};

const turn = { agent: 'solver', text: 'x', tokens: [1, 2], reward: 0.5, valid: true };
const episode = { task: 'a', sample: 0, reward: 1, turns: [turn] };

const rollouts: Target = {
  name: 'rollouts',
  seeds: [
    [episode, { ...episode, sample: 1, reward: 0 }].map((each) => JSON.stringify(each)).join('\n'),
    '{"prompt":"a","agent":"s","reward":1}\n{"prompt":"a","agent":"s","reward":0}\n',
    '{"input":"a","output":"b","score":1.0,"step":1}\n{"input":"a","output":"c","score":0.0,"step":1}\n',
  ],
  words: ['"reward":', '"agent":', '"turns":', '"task":', 'null', '[]', '{}', '\n', '1e999'],
  inputs: 8_000,
  async run(input) {
    const path = join(tmpdir(), `drmas-fuzz-${process.pid}.jsonl`);
    writeFileSync(path, input);
    return inspect(await collectLog([path]));
  },
};

export const runs = [events, record, rollouts];
