/** An import takes a time that grows with the length of its traces, however many entries one list of them has. */
import { mkdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { Turn } from '@drmas/engine/nouns';
import { describe, expect, it } from 'vitest';
import { processorSeconds } from '../../../test/support/time-and-chance.js';
import { temporaryRoot } from '../../../test/support/tiny-run.js';
import { PlayedPrompts } from './demanded-schemas.js';
import type { DemonstrationRow } from './demonstration-rows.js';
import { importTraces } from './import-traces.js';
import { tracedEpisode } from './model-calls.js';
import type { TraceSpan } from './span-fields.js';
import { traceValues } from './trace-files.js';
import { UnreadCounts } from './unread.js';

const root = temporaryRoot();
let count = 0;

async function fileOf(text: string): Promise<string> {
  const folder = join(root, String(count++));
  await mkdir(folder);
  await writeFile(join(folder, 'traces.json'), text);
  return join(folder, 'traces.json');
}

const ALL = 20_000;
const PARTS = 40;
/** Work whose time grows with its square takes up to 40 times as long at once as in 40 parts. */
const MOST = 5;

/** Does the same work at once and in parts, and compares the times. */
async function expectGrowth(work: (size: number) => unknown): Promise<void> {
  await work(ALL / PARTS); // compiles
  const inParts = await processorSeconds(async () => {
    for (let i = 0; i < PARTS; i++) await work(ALL / PARTS);
  });
  expect((await processorSeconds(() => work(ALL))) / Math.max(inParts, 0.02)).toBeLessThan(MOST);
}

const list = <T>(size: number, of: (i: number) => T) => Array.from({ length: size }, (_, i) => of(i));
const question = { role: 'user', content: 'Price?' };
const told = [{ role: 'assistant', content: 'Five.' }];
const call = (i: number) => ({ id: `c${i}`, function: { name: 'f', arguments: '{}' } });
const result = (i: number) => ({ role: 'tool', tool_call_id: `c${i}`, content: 'x' });
const item = (i: number) => ({ type: 'function_call', call_id: `c${i}`, name: 'f', arguments: '{}' });
const part = (i: number) => ({ type: 'tool_use', id: `d${i}`, name: 'f', input: {} });
const tool = (name: string) => ({ name, parameters: { type: 'object', properties: {} } });
const calling = (...tool_calls: unknown[]) => ({ role: 'assistant', content: '', tool_calls });

const spanOf = (input: unknown, output: unknown, tools?: unknown): TraceSpan => ({
  ...{ trace: 't', id: 's', name: 'chat', start: '', scores: [], failed: false, place: { file: 'a' } },
  attributes: {
    ...{ 'gen_ai.operation.name': 'chat', 'gen_ai.input.messages': input, 'gen_ai.output.messages': output },
    'gen_ai.tool.definitions': tools,
  },
});
const logOf = (i: number): TraceSpan => ({
  ...spanOf(undefined, undefined),
  ...{ kind: 'event', start: String(i).padStart(9, '0'), attributes: { [`n${i % 9}`]: i }, events: [] },
});

describe('the time of an import grows no faster than', () => {
  type Growing = [string, (size: number) => readonly TraceSpan[]];
  const daily: Growing[] = [
    ['the items of an input', (size) => [spanOf([question, ...list(size, item)], told)]],
    [
      'the messages of an answer',
      (size) => [
        spanOf(
          [question],
          list(size, (i) => calling(call(i))),
          [tool('f')],
        ),
      ],
    ],
    [
      'the results behind a conversation',
      (size) => [spanOf([...list(size, () => question), calling(...list(size, call)), ...list(size, result)], told)],
    ],
    [
      'the calls of a message in its parts and beside them',
      (size) => [spanOf([question, { ...calling(...list(size, call)), content: list(size, part) }], told)],
    ],
    ['the logs of a span', (size) => [...list(size, logOf), spanOf([question], told)]],
  ];
  /** Lists that are read as one of the others is. */
  const slow: Growing[] = [
    ['the items of an answer', (size) => [spanOf([question], list(size, item), [tool('f')])]],
    [
      'the calls and the tools',
      (size) => [spanOf([question], [calling(...list(size, call))], [...list(size, (i) => tool(`t${i}`)), tool('f')])],
    ],
  ];
  it.each(daily)('%s', readsOneCall);
  it.each(slow)('%s', { tags: 'verify' }, readsOneCall);

  async function readsOneCall(_: string, spans: Growing[1]): Promise<void> {
    await expectGrowth((size) => expect(tracedEpisode('t', spans(size)).calls).toHaveLength(1));
  }

  const manyIds = 'the ids of a file on several lines';
  it(manyIds, () => findsLines((id) => id));
  const escaped = (id: string) => id.replaceAll('/', '\\/');
  it(`${manyIds}, with escapes`, { tags: 'verify' }, () => findsLines(escaped));
  it(`${manyIds}, that no field has`, { tags: 'verify' }, () => findsLines(() => 'x'));

  async function findsLines(written: (id: string) => string): Promise<void> {
    await expectGrowth(async (size) => {
      const ids = list(size, (i) => `${i}/span`);
      const fields = ids.map((id) => `{\n"spanId": "${written(id)}"\n}`);
      for await (const { placeOf } of traceValues(await fileOf(`{"spans": [${fields}]\n}`), new UnreadCounts()))
        expect(ids.map((id) => placeOf(id).line).at(-1)).toBe(written('/') === 'x' ? 1 : 2 * size);
    });
  }
});

it('the schemas of a team are read in a time that grows no faster than its prompts', async () => {
  const turn = (i: number) => ({ agent: 'a', messages: [{ role: 'system', content: `Say ${i}.` }] }) as unknown as Turn;
  const strange = { agent: 'a', messages: told } as DemonstrationRow;
  await expectGrowth((size) => {
    const prompts = new PlayedPrompts(list(size / 10, turn));
    for (let i = 0; i < size / 10; i++) prompts.asPlayed(strange);
    expect(prompts.warnings).toHaveLength(1);
  });
});

describe('an import ends, and counts what it does not read, for JSON nested deeper than the stack', () => {
  /** JSON in JSON, each nested as deep as files may be: none of the texts is nested too deep by itself. */
  const within = list(8, () => ({ open: '{"prompt":'.repeat(499), close: '}'.repeat(499) })).reduce(
    (text, { open, close }) => `${open}${JSON.stringify(text)}${close}`,
    'end',
  );
  const deep = `${'{"prompt":{"message":'.repeat(10_000)}1${'}}'.repeat(10_000)}`;
  const row = (spanId: string, attributes: object) => JSON.stringify({ traceId: spanId, spanId, attributes });
  const callOf = (input: unknown, output: unknown, more: object = {}) => ({
    ...{ 'gen_ai.operation.name': 'chat', 'gen_ai.input.messages': input, 'gen_ai.output.messages': output },
    ...more,
  });

  it.each<[string, object, object]>([
    ['an input', callOf(deep, told), { unread: { deep: { count: 1 } } }],
    ['an answer', callOf([question], deep), { unread: { deep: { count: 1 } } }],
    ['a task', callOf([question], told, { 'drmas.task.data': deep }), { unread: { task: { count: 1 } } }],
    ['a reason of its end', callOf([question], told, { 'gen_ai.response.finish_reasons': deep }), { unread: {} }],
    ['a text', callOf([{ role: 'user', content: deep }], told), { unread: {} }],
    ['arguments', callOf([question, calling({ function: { name: 'f', arguments: deep } })], told), { unread: {} }],
    ['JSON in JSON of an input', callOf(within, told), { unread: { deep: { count: 1 } } }],
    ['JSON in JSON of an answer', callOf([question], within), { unread: { deep: { count: 2 } } }], // in the task too
    ['JSON in JSON of a text', callOf([{ role: 'user', content: within }], told), { unread: { deep: { count: 2 } } }],
    [
      'JSON in JSON of a task',
      callOf([question], told, { 'drmas.task.data': within }),
      { unread: { deep: { count: 1 } } },
    ],
  ])('%s', async (_, attributes, counted) => {
    const file = await fileOf([row('deep', attributes), row('plain', callOf([question], told))].join('\n'));
    const { demonstrations, unread } = await importTraces(file, { agent: 'buyer' });
    const isRead = !('deep' in unread) || 'drmas.task.data' in attributes;
    expect({ demonstrations, unread }).toMatchObject({ demonstrations: isRead ? 2 : 1, ...counted });
  });

  it('JSON in JSON of spans', async () => {
    const whole = (inner: string) => `{"assessments":[],"spans":[{"trace_id":"t","span_id":"s"},${inner}]}`;
    const inText = (inner: string) => `{"assessments":[],"spans":${JSON.stringify(`[{"trace_id":"t"},${inner}]`)}}`;
    const nested = list(8, () => whole).reduce(
      (text) => list(240, () => whole).reduce((inner, around) => around(inner), inText(text)),
      '{}',
    );
    const file = await fileOf([nested, row('plain', callOf([question], told))].join('\n'));
    const { demonstrations, unread } = await importTraces(file, { agent: 'buyer' });
    expect({ demonstrations, unread }).toMatchObject({ demonstrations: 1, unread: { deep: { count: 1 } } });
  });
});
