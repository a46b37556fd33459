/** The files in the directory of a run, or in logs of others: events, recipe.json, rollouts. */
import { writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { jsonObject } from '@drmas/engine/errors';
import type { RunEvent } from '@drmas/engine/events';
import { nodeFiles } from '@drmas/engine/platform';
import { ablationLines } from '../../../src/cli/reporter/ablation-printer.js';
import { comparisonLines } from '../../../src/cli/reporter/comparison/comparison-printer.js';
import { emptyHistory, remember } from '../../../src/cli/reporter/progress-printer.js';
import { summaryLines } from '../../../src/cli/reporter/summary-printer.js';
import { checkedEpisode, shownGroup } from '../../../src/dashboard/report/shown-episodes.js';
import { readEpisodes, storedEpisode } from '../../../src/method/store/episode-files.js';
import { readEvents } from '../../../src/method/store/event-log.js';
import { parseRecord } from '../../../src/method/store/run-record.js';
import { summariseRun, summariseVariants } from '../../../src/runs/analysis/ablation-summary.js';
import { pairedDifferences } from '../../../src/runs/analysis/paired-interval.js';
import { RunFactsReader } from '../../../src/runs/analysis/run-facts.js';
import { collectLog } from '../../../src/runs/studies/inspect/collect-turns.js';
import { inspect } from '../../../src/runs/studies/inspect/inspect-log.js';
import { run } from '../../fixtures/run-events.js';
import { memoryFiles } from '../../support/memory-files.js';
import { madeUpEpisode } from '../../support/recorded-run.js';
import type { Target } from '../target.js';

/** The readers of events behind the commands. They print no number that was not measured, and nothing undefined. */
function readersOf(events: readonly RunEvent[]): void {
  const facts = new RunFactsReader({});
  for (const event of events) facts.add(event);
  const runs = ['grpo', 'drmas'].map((variant) => summariseRun({ name: variant, variant, seed: 1 }, events));
  const variants = summariseVariants(runs, ['grpo', 'drmas']);
  const differences = pairedDifferences(runs, ['grpo', 'drmas'], 'grpo');
  const result = { directory: '', baseline: 'grpo', runs, variants, differences, metricDifferences: {} };
  const lines = [
    ...summaryLines(events.reduce(remember, emptyHistory()), 1, 80),
    ...ablationLines(result, 80),
    ...comparisonLines(result, 80),
  ];
  const isText = JSON.stringify(events).includes('NaN'); // a name may be called so
  const odd = lines.find((line) => /\bNaN\b|\bundefined\b|\[object /.test(line));
  if (odd !== undefined && !isText) throw new Error(`printed: ${odd}`);
}

const events: Target = {
  name: 'events',
  seeds: run.slice(0, 12).map((event) => `${JSON.stringify(event)}\n`),
  words: ['\n', '"type":"step"', '"agents":null', '"policies":[]', 'null', '{', '}', '"step":'],
  inputs: 110_000,
  run: async (input) => readersOf(await readEvents(memoryFiles(new Map([['events.jsonl', input]])), 'events.jsonl')),
};

const record: Target = {
  name: 'recipe-json',
  seeds: [
    JSON.stringify({
      version: 1,
      recipe: { source: 'math', overrides: ['seed=1'], codeHash: 'x' },
      resolved: {
        name: 'math',
        seed: 1,
        assign: { solver: 'solver' },
        policies: { solver: { model: { type: 'lora' } } },
      },
      agents: { solver: { name: 'solver', sampling: { temperature: 1, topP: 1, topK: 0, maxTokens: 4 } } },
      acceptedChanges: [{ time: '2026-11-20T00:00:00Z', codeHash: 'y', step: 3 }],
    }),
  ],
  words: ['version', 'resolved', 'overrides', 'null'],
  inputs: 60_000,
  run(input) {
    const { resolved } = parseRecord(input.toString(), 'recipe.json');
    return new RunFactsReader(resolved).facts;
  },
};

/** Episodes as a run stores them, and what pages show of them. */
const stored: Target = {
  name: 'stored-episodes',
  seeds: [1, 0].map((reward) => `${JSON.stringify(storedEpisode(madeUpEpisode('task', 0, reward, 'words')))}\n`),
  words: ['"turns":', '"messages":', '"score":', 'null', '[]', '{}'],
  inputs: 20_000,
  async run(input) {
    const path = join(tmpdir(), `drmas-fuzz-${process.pid}-episodes.jsonl`);
    writeFileSync(path, input);
    const episodes = await readEpisodes(nodeFiles, path);
    const rows = input.toString().split('\n').slice(0, -1);
    const shown = rows.flatMap((row, i) => {
      const value = jsonObject(row);
      return value === undefined ? [] : [checkedEpisode(value, { file: path, line: i + 1 })];
    });
    if (shown.length > 0) shownGroup('task', shown);
    return episodes.length === 0 ? undefined : inspect(await collectLog([path]));
  },
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

export const runs = [events, record, stored, rollouts];
