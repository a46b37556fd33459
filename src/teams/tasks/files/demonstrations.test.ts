import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { RandomStream } from '@drmas/engine/math';
import type { Split, TaskSource, Trace } from '@drmas/engine/nouns';
import { bytesTokenizer } from '@drmas/engine/tokens';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { traceBatch } from '../../../method/training/warm-start/supervised.js';
import { arithmetic } from '../generated/arithmetic.js';
import { withDemonstrations } from './demonstrations.js';
import { jsonl } from './file-source.js';

let root: string;
let path: string;
beforeEach(async () => {
  root = await mkdtemp(join(tmpdir(), 'drmas-demonstrations-'));
  path = join(root, 'demonstrations.jsonl');
});
afterEach(() => rm(root, { recursive: true }));

const { trace: _, ...tasks } = arithmetic();
const lines = (rows: readonly unknown[]) => rows.map((row) => JSON.stringify(row)).join('\n');
async function loaded(rows: readonly unknown[], options = {}): Promise<TaskSource> {
  await writeFile(path, lines(rows));
  const source = withDemonstrations(tasks, path, options);
  await source.load('train');
  return source;
}
const drawn = (source: TaskSource, split: Split, count = 300): Trace[] =>
  Array.from({ length: count }, (_, i) => source.trace?.(new RandomStream('draw', i), split) as Trace);

describe('demonstrations of held-out tasks', () => {
  const questions = Array.from({ length: 20 }, (_, i) => `What does item ${i} cost?`);
  const source = async (rows: readonly object[], options: { test?: number; split?: string } = { split: 'part' }) => {
    const file = join(root, 'tasks.jsonl');
    const all = questions.map((question, i) => ({ question, answer: `${i}`, part: i % 4 === 0 ? 'test' : 'train' }));
    await writeFile(file, lines(all));
    await writeFile(path, lines(rows));
    return withDemonstrations(jsonl(file, options), path);
  };
  const row = (prompt: string) => ({ agent: 'solver', prompt, response: 'one' });

  it('are counted in a warning and left out, whatever stands around the question', async () => {
    const held = [questions[0], `Task: ${questions[4]} Answer briefly.`, `"${questions[8]}"`];
    const kept = [questions[1], questions[5], 'What does item 1', `xWhat does item 12 cost?`];
    const tasks = await source([...held, ...kept].map((text) => row(text as string)));
    await tasks.load('train');
    const key = tasks.traceKey?.();
    const { warnings } = await tasks.load('test');
    expect(warnings).toEqual([
      `3 of 7 demonstrations in ${path} are of held-out tasks, such as "${questions[0]}", and are left out`,
    ]);
    const prompts = new Set(drawn(tasks, 'train').map(({ messages }) => messages[0]?.content));
    expect([...prompts].filter((prompt) => !kept.includes(prompt))).toEqual([]);
    expect(tasks.traceKey?.()).not.toBe(key); // of the cached warm start
  });

  it('are not those of training tasks whose longer question has a held-out one in it', async () => {
    const tasks = join(root, 'fruit.jsonl');
    const all = [
      ['kiwi?', 'test'],
      ['How much is one kiwi?', 'train'],
      ['pear?', 'train'],
      ['One pear?', 'test'],
      ['+-+-+-+', 'test'],
      ['2 +-+-+-+ 2', 'train'],
    ];
    await writeFile(tasks, lines(all.map(([question, part]) => ({ question, answer: '1', part }))));
    const kept = [
      'How much is one kiwi?',
      'Is it a price for: How much is one kiwi? Yes or no',
      'pear?',
      'What is 2 +-+-+-+ 2',
    ];
    const left = ['kiwi?', 'A kiwi? How much is one kiwi?', 'One pear?', 'Is it: One pear?', 'a +-+-+-+ b'];
    await writeFile(path, lines([...kept, ...left].map(row)));
    const source = withDemonstrations(jsonl(tasks, { split: 'part' }), path);
    const { warnings } = await source.load('test');
    expect(warnings).toEqual([
      expect.stringContaining(`${left.length} of ${kept.length + left.length} demonstrations`),
    ]);
    const prompts = new Set(
      [...drawn(source, 'train'), ...drawn(source, 'test')].map(({ messages }) => messages[0]?.content),
    );
    expect([...prompts].filter((prompt) => !kept.includes(prompt ?? ''))).toEqual([]);
  });

  it('are refused if no other is left', async () => {
    const tasks = await source([row(questions[0] as string)]);
    await expect(tasks.load('test')).rejects.toThrow(/all demonstrations are of held-out tasks/);
  });

  it('do not exist if a file without a split gives both the training tasks and the test tasks', async () => {
    const tasks = await source(questions.map(row), {});
    expect((await tasks.load('test')).warnings ?? []).toEqual([]);
  });
});

describe('demonstrations from a file', () => {
  it('may be more than fits in memory: rows of a large file are read when they are drawn', {
    tags: 'verify',
    timeout: 300_000, // it reads 150 MB of JSON; beside other work it took over a minute
  }, async () => {
    const long = 'and so on, ü '.repeat(2 ** 16);
    const rowOf = (i: number) => ({
      agent: i % 3 === 0 ? 'solver' : 'verifier',
      prompt: `${i} ${long}`,
      response: `${i}`,
    });
    const rows = Array.from({ length: 60 }, (_, i) => rowOf(i));
    const answers = (source: TaskSource) =>
      (['train', 'test'] as const).map((split) => new Set(drawn(source, split).map(({ response }) => response)));
    await writeFile(path, `\ufeff${lines(rows.slice(0, 30))}\r\n\n${lines(rows.slice(30))}\n`);
    const large = withDemonstrations(tasks, path);
    await large.load('train');
    const [train = new Set(), test = new Set()] = answers(large);
    expect(new Set([...train, ...test])).toEqual(new Set(rows.map(({ response }) => response)));
    expect([...train].filter((answer) => test.has(answer))).toEqual([]);
    for (const { agent, messages, response } of drawn(large, 'train', 20))
      expect([agent, messages]).toEqual([
        rowOf(Number(response)).agent,
        [{ role: 'user', content: rowOf(Number(response)).prompt }],
      ]);
    await writeFile(path, `${lines(rows)}\n{`);
    expect(() => drawn(large, 'train', 1)).toThrow(/have changed since they were read/);
    await expect(large.load('train')).rejects.toThrow(`${path}:61: expected JSON, got {`);
  });

  it('are those of the file as it is when the tasks are loaded', async () => {
    const source = await loaded([{ agent: 'solver', prompt: '1+1', response: '2' }]);
    const key = source.traceKey?.();
    await source.load('test');
    expect(source.traceKey?.()).toBe(key);
    await rm(path);
    await writeFile(path, lines([{ agent: 'solver', prompt: '1+2', response: '3' }]));
    await source.load('train');
    expect(new Set(drawn(source, 'train').map(({ response }) => response))).toEqual(new Set(['3']));
    expect(source.traceKey?.()).not.toBe(key);
  });

  it('have a prompt or messages, and a response or a final message of the assistant', async () => {
    const source = await loaded(
      [
        { agent: 'solver', prompt: '1+1', response: '2' },
        {
          messages: [
            { role: 'user', content: '1+2' },
            { role: 'assistant', content: '3' },
          ],
        },
        { messages: [{ role: 'user', content: '1+3' }], response: '4' },
      ],
      { agent: 'verifier' },
    );
    const byResponse = new Map(drawn(source, 'train').map((trace) => [trace.response, trace]));
    expect([...byResponse.keys()].sort()).toEqual(['2', '3', '4']);
    expect(byResponse.get('2')).toEqual({
      agent: 'solver',
      messages: [{ role: 'user', content: '1+1' }],
      response: '2',
    });
    expect(byResponse.get('3')).toEqual({
      agent: 'verifier',
      messages: [{ role: 'user', content: '1+2' }],
      response: '3',
    });
  });

  it('keep the system prompt of a program, and tool calls to learn', async () => {
    const tools = [{ name: 'price', parameters: { type: 'object', properties: { fruit: { type: 'string' } } } }];
    const toolCalls = [{ id: 'c1', name: 'price', arguments: '{"fruit":"fig"}' }];
    const messages = [
      { role: 'system', content: 'Buy.' },
      { role: 'user', content: '3 fig' },
      { role: 'assistant', content: '', toolCalls },
    ];
    const [trace] = drawn(await loaded([{ agent: 'buyer', messages, tools }]), 'train', 1);
    const read = [{ role: 'user', content: '3 fig' }];
    expect(trace).toEqual({ agent: 'buyer', system: 'Buy.', messages: read, tools, response: '', toolCalls });
    const source = { sources: { train: await loaded([{ agent: 'buyer', messages, tools }]), test: tasks } };
    const tokenizer = bytesTokenizer();
    const learnt = (systemPrompts: Record<string, string>, shown = source) => {
      const [sample] = traceBatch(
        { ...shown, systemPrompts },
        { agents: ['buyer'], tokenizer, context: 999 },
        1,
        'train',
        0,
        1,
      );
      const { tokens = [], mask = [] } = sample ?? {};
      return [0, 1].map((side) => tokenizer.decode([...tokens].filter((_, i) => mask[i] === side)));
    };
    expect(learnt({})).toEqual([expect.stringContaining('Buy.'), expect.stringMatching(/^@price\(fig\)/)]);
    const demand = 'Answer with JSON of this schema alone: {"type":"object","properties":{}}';
    const [first, ...rest] = messages;
    const demanding = [{ ...first, content: `Buy.\n${demand}` }, ...rest];
    const schemed = { sources: { train: await loaded([{ agent: 'buyer', messages: demanding, tools }]), test: tasks } };
    expect(learnt({ buyer: 'Sell.' }, schemed)[0]).toContain(`Sell.\n${demand}`);
    const [prompt] = learnt({ buyer: 'Sell.' });
    expect([prompt?.includes('Sell.'), prompt?.includes('Buy.')]).toEqual([true, false]);
  });

  it('are equal for equal streams, and held-out ones are never drawn', async () => {
    const rows = Array.from({ length: 200 }, (_, i) => ({ agent: 'solver', prompt: `${i}+0`, response: String(i) }));
    const source = await loaded(rows);
    expect(drawn(source, 'train')).toEqual(drawn(source, 'train'));
    const [train, test] = (['train', 'test'] as const).map(
      (split) => new Set(drawn(source, split, 2000).map(({ response }) => response)),
    );
    expect(test?.size).toBeGreaterThan(5);
    expect(test?.size).toBeLessThan(50);
    expect([...(test ?? [])].filter((response) => train?.has(response))).toEqual([]);
  });

  it.each([
    ['{"agent": "solver", "prompt": "a", "response": "b"}\n{"prompt"', /demonstrations\.jsonl:2: expected JSON/],
    ['\n{"agent": "solver", "promt": "a", "response": "b"}', /:2: not a demonstration: .*promt/],
    ['{"agent": "solver", "response": "b"}', /:1: not a demonstration: expected either prompt or messages/],
    ['{"agent": "solver", "prompt": "a"}', /:1: expected "response", or messages that end with an assistant/],
    ['{"prompt": "a", "response": "b"}', /:1: expected the name of an agent/],
    [
      '{"agent": "s", "messages": [{"role": "user", "content": "x"}, {"role": "system", "content": "x"}], "response": "b"}',
      /:1: not a demonstration: messages: expected at most one system prompt, as the first message/,
    ],
    [
      '{"agent": "s", "messages": [{"role": "system", "content": "x"}], "response": "b"}',
      /:1: expected "response", or/,
    ],
    [
      '{"agent": "s", "messages": [{"role": "user", "content": "x"}, {"role": "assistant", "content": "", "toolCalls": [{"id": "1", "name": "look", "arguments": "{}"}]}]}',
      /:1: the response calls the tool 'look', which "tools" does not have/,
    ],
    ['', /expected at least one demonstration, the file holds none/],
  ])('are refused with their line in %j', async (text, message) => {
    await writeFile(path, text);
    await expect(withDemonstrations(tasks, path).load('train')).rejects.toThrow(message);
  });

  it('are named by the recipe, may be set from outside, and distinguish kept warm starts', async () => {
    const first = await loaded([{ agent: 'solver', prompt: '1', response: '2' }]);
    expect(first.settings).toMatchObject({ demonstrationFile: path, top: 29 });
    const key = first.traceKey?.();
    const second = await loaded([{ agent: 'solver', prompt: '1', response: '3' }]);
    expect(second.traceKey?.()).not.toBe(key);
    const other = first.configure?.({ ...first.settings, top: 9, demonstrationFile: 'gone.jsonl' });
    expect(other?.settings).toMatchObject({ demonstrationFile: 'gone.jsonl', top: 9 });
    await expect(other?.load('train')).rejects.toThrow(/gone\.jsonl: there is no such file\. npx drmas demonstrate/);
  });
});
