/** The files of studies, checkpoints and imports, and the traces and schemas of other programs. */
import { mkdirSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { fitsSchema } from '@drmas/engine/errors';
import { parseJson } from '@drmas/engine/formats';
import { readSaved } from '@drmas/tinker/internal/client/saved-policy';
import { readAblation, variantsOf } from '../../../src/method/store/ablation-record.js';
import { Checkpoints } from '../../../src/method/store/checkpoint-files.js';
import { readDigests, readEpisodes } from '../../../src/method/store/episode-files.js';
import { lockHolder } from '../../../src/method/store/run-lock.js';
import { commitsOf } from '../../../src/method/training/checkpoint.js';
import { importTraces, readTracedTeam } from '../../../src/runs/traces/import-traces.js';
import { memoryFiles } from '../../support/memory-files.js';
import type { Target } from '../target.js';

/** Writes the input as the file of this name, and returns its path. */
function onDisk(input: Buffer, name: string): string {
  const path = join(tmpdir(), `drmas-fuzz-${process.pid}`, name);
  mkdirSync(dirname(path), { recursive: true });
  writeFileSync(path, input);
  return path;
}

const inMemory = (input: Buffer, path: string) => memoryFiles(new Map([[path, input]]));

const ablation: Target = {
  name: 'ablation-json',
  seeds: [
    JSON.stringify({
      version: 1,
      recipe: { source: 'math', codeHash: 'x', overrides: ['training.steps=4'] },
      vary: [{ key: 'advantage', values: ['grpo', 'drmas'] }],
      bundles: [{ name: 'a', overrides: ['seed=1'] }],
      parts: ['a', 'b'],
      seeds: 2,
      baseline: 'grpo',
    }),
  ],
  words: ['version', 'vary', 'bundles', 'overrides', 'null'],
  inputs: 6_000,
  async run(input) {
    const record = await readAblation(dirname(onDisk(input, 'ablation.json')));
    if (record !== undefined) variantsOf(record);
  },
};

const cursor: Target = {
  name: 'cursor-json',
  seeds: [
    JSON.stringify({ version: 1, step: 3, events: { bytes: 9, lines: 2, sha256: 'a' }, interrupted: false }),
    JSON.stringify({ version: 2, step: 3, events: { bytes: 9, lines: 2 }, episodes: { bytes: 1, lines: 1 } }),
  ],
  words: ['version', 'events', 'bytes', 'null'],
  inputs: 20_000,
  run: (input) => new Checkpoints(inMemory(input, 'step/cursor.json'), '').cursor({ step: 3, directory: 'step' }),
};

/** A checkpoint's state as a run of two policies writes it. */
const state: Target = {
  name: 'state-json',
  seeds: [
    JSON.stringify({
      step: 4,
      evaluated: 2,
      watch: {
        norms: { solver: [0.1, 0.2] },
        dropped: { solver: 1 },
        symptoms: { solver: { first: [{ reward: 0.1, rewardStd: 0, entropy: 4.9, length: 4 }], last: [], shown: [] } },
        silent: { solver: 3 },
      },
      kl: { solver: 0.25 },
      made: { solver: 7 },
      estimator: { mean: 2 },
      predictions: { easy: 0.9 },
      warmStart: 'abc',
      commits: { 'org/model': 'abc' },
    }),
  ],
  words: ['"watch":', '"symptoms":', '../', 'null'],
  inputs: 20_000,
  run: (input) => commitsOf(inMemory(input, 'x/state.json'), { step: 4, directory: 'x' }),
};

const digests: Target = {
  name: 'digests',
  seeds: [
    `${JSON.stringify({ file: 'episodes/step-000001.jsonl', bytes: 3, sha256: 'a' })}\n`,
    `${JSON.stringify({ file: 'events.jsonl', bytes: 3, sha256: 'a', lines: 1 })}\n`,
  ],
  words: ['../', 'episodes/', 'null'],
  inputs: 20_000,
  run: (input) => readDigests({ ...inMemory(input, 'x/digests.jsonl'), exists: async () => true }, 'x'),
};

const savedPolicy: Target = {
  name: 'tinker-json',
  seeds: [
    JSON.stringify({
      version: 1,
      url: 'http://127.0.0.1:1',
      path: 'tinker://m/weights/a',
      baseModel: 'm',
      rank: 8,
      updates: 3,
      policyVersion: 1,
    }),
  ],
  words: ['tinker://', '../', 'http://169.254.169.254', 'null'],
  inputs: 20_000,
  run: (input) => readSaved(inMemory(input, 'x/tinker.json'), 'x'),
};

const lock: Target = {
  name: 'lock-note',
  seeds: [JSON.stringify({ pid: 1, host: 'a', since: '2026-01-01T00:00:00Z' })],
  words: ['pid', '-1', 'null'],
  inputs: 20_000,
  run: (input) => lockHolder(inMemory(input, 'lock'), ''),
};

const episodes: Target = {
  name: 'episodes',
  seeds: [
    `${JSON.stringify({ task: 'a', turns: [{ agent: 's', tokens: [1], logprobs: [-1] }], reward: 1 })}\n`,
    '{"task":"a","failed":{"reason":"timeout"}}\n{"task":"b","turns":[]}\n',
  ],
  words: ['\n', '{', '}', '"turns":', 'null'],
  inputs: 20_000,
  run: (input) => readEpisodes(inMemory(input, 'e.jsonl'), 'e.jsonl'),
};

const tracedTeam: Target = {
  name: 'traced-team',
  seeds: [JSON.stringify({ scored: 2, score: 0.5, read: 10, written: 3, price: { read: 1, write: 2 } })],
  words: ['price', 'null', '-1'],
  inputs: 6_000,
  run: (input) => readTracedTeam(dirname(onDisk(input, 'traced-team.json'))),
};

const attributes = {
  'gen_ai.operation.name': 'chat',
  'gen_ai.agent.name': 'buyer',
  'gen_ai.input.messages': [{ role: 'user', content: '3 fig' }],
  'gen_ai.output.messages': [{ role: 'assistant', parts: [{ type: 'text', content: '5' }] }],
  'gen_ai.usage.input_tokens': 3,
};
const otlp = Object.entries(attributes).map(([key, value]) => ({ key, value: { stringValue: JSON.stringify(value) } }));

const traces: Target = {
  name: 'traces',
  seeds: [
    JSON.stringify({ traceId: 't', spanId: 's', name: 'chat', startTimeUnixNano: '1', attributes }),
    JSON.stringify({
      resourceSpans: [{ scopeSpans: [{ spans: [{ traceId: 't', spanId: 's', name: 'chat', attributes: otlp }] }] }],
    }),
    JSON.stringify({
      ...{ id: '1', traceId: '1', type: 'GENERATION', startTime: '2026-01-01T00:00:00Z', model: 'large' },
      input: [{ role: 'user', content: '1+1?' }],
      output: { role: 'assistant', content: '2' },
      metadata: { attributes: { 'gen_ai.agent.name': 'solver' } },
    }),
  ],
  words: ['resourceSpans', 'kvlistValue', 'arrayValue', 'tool_calls', 'parts', '__proto__', 'null', '\n'],
  inputs: 6_000,
  run: (input) => importTraces(onDisk(input, 'traces.jsonl'), { agent: 'buyer' }),
};

const schema: Target = {
  name: 'json-schema',
  seeds: [
    JSON.stringify({
      schema: {
        type: 'object',
        properties: { a: { type: 'string', pattern: '^a+$', maxLength: 3 }, b: { $ref: '#/$defs/b' } },
        required: ['a'],
        additionalProperties: false,
        $defs: { b: { anyOf: [{ type: 'integer', minimum: 0, multipleOf: 2 }, { enum: ['x', null] }] } },
      },
      value: { a: 'aaa', b: 4 },
    }),
    JSON.stringify({ schema: { type: 'array', items: { const: 1 }, uniqueItems: true }, value: [1, 1] }),
  ],
  words: ['$ref', '#', '#/$defs/b', 'pattern', '(a+)+$', 'patternProperties', 'allOf', 'not', 'dependentSchemas'],
  inputs: 40_000,
  run(input) {
    const pair = parseJson(input.toString(), 'schema') as { schema?: never; value?: unknown } | null;
    fitsSchema(pair?.value, pair?.schema ?? {});
  },
};

export const stored = [ablation, cursor, state, digests, savedPolicy, lock, episodes, tracedTeam, traces, schema];
