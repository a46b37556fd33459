import { ArgumentError, RecipeError } from '@drmas/engine/errors';
import { symbolsTokenizer } from '@drmas/engine/internal/model/tokenizers/symbols';
import { RandomStream } from '@drmas/engine/math';
import { type Split, system, type Trace } from '@drmas/engine/nouns';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import {
  execute,
  fileNames,
  type Lines,
  operations,
  type ToolboxVersion,
  toolboxCommand,
  toolboxSymbols,
} from './commands.js';
import { readRequest, requestText, toolboxSandbox } from './sandbox.js';
import { toolbox } from './world.js';

const lines = fc.array(fc.integer({ min: 0, max: 9 }), { minLength: 1, maxLength: 8 });
const version = fc.constantFrom<ToolboxVersion[]>(1, 2);
const sorted = (of: Lines) => [...of].sort((x, y) => x - y);

/** The content of the two files after each command, in other words than the toolbox's. */
const laws: Readonly<Record<string, (before: [Lines, Lines], after: [Lines | undefined, Lines]) => void>> = {
  copy: ([a], after) => expect(after).toEqual([a, a]),
  move: ([a], after) => expect(after).toEqual([undefined, a]),
  exchange: ([a, b], after) => expect(after).toEqual([b, a]),
  append: ([a, b], [, after]) => expect([after.slice(0, b.length), after.slice(b.length)]).toEqual([b, a]),
  subtract: ([a, b], [, after]) => {
    for (const line of new Set([...a, ...b]))
      expect(after.filter((one) => one === line).length).toBe(
        a.indexOf(line) < 0 ? b.filter((one) => one === line).length : 0,
      );
  },
  sort: ([a], [, after]) => {
    expect(sorted(after)).toEqual(sorted(a));
    for (const [i, line] of after.slice(1).entries()) expect(line).toBeGreaterThanOrEqual(after[i] ?? 0);
  },
  reverse: ([a], [, after]) => expect(after.map((_, i) => after.at(-1 - i))).toEqual(a),
  dedupe: ([a], [, after]) => {
    expect(sorted(after)).toEqual(sorted([...new Set(a)]));
    expect(after.map((line) => a.indexOf(line))).toEqual(sorted(after.map((line) => a.indexOf(line))));
  },
  count: ([a], [, after]) => expect(after).toEqual([a.length]),
  total: ([a], [, after]) => expect(after).toEqual([a.reduce((sum, line) => sum + line)]),
  top: ([a], [, after]) => expect(after).toEqual([a[0]]),
  bottom: ([a], [, after]) => expect(after).toEqual([a[a.length - 1]]),
};
const changesItsSource = ['move', 'exchange'];

describe('the toolbox', () => {
  it.each(operations.map(({ verb, names }) => [verb, names] as const))('can %s', (verb, names) => {
    fc.assert(
      fc.property(lines, lines, lines, version, (a, b, other, version) => {
        const before = new Map([
          ['a', a],
          ['b', b],
          ['c', other],
        ]);
        const after = execute(`${names[version]} a b`, before, version);
        if (typeof after === 'string') throw new Error(after);
        laws[verb]?.([a, b], [after.get('a'), after.get('b') ?? []]);
        if (!changesItsSource.includes(verb)) expect(after.get('a')).toEqual(a);
        expect(after.get('c')).toEqual(other);
        expect([...before]).toEqual([
          ['a', a],
          ['b', b],
          ['c', other],
        ]);
      }),
    );
    expect(laws).toHaveProperty(verb);
  });

  it('has a name for each command in each version, and no name twice', () => {
    const names = operations.flatMap(({ names }) => [names[1], names[2]]);
    expect(new Set(names).size).toBe(24);
    for (const { names } of operations) {
      const files = new Map(fileNames.map((name) => [name, [1, 2]]));
      expect(execute(`${names[1]} a b`, files, 2)).toBe(`${names[1]}: removed in version 2`);
      expect(execute(`${names[2]} a b`, files, 1)).toBe('not a command');
    }
  });

  it.each([
    ['', 'usage: command file file'],
    ['sort a', 'usage: command file file'],
    ['sort a b c', 'usage: command file file'],
    ['sort  a b', 'usage: command file file'],
    ['sort a b ', 'usage: command file file'],
    ['sort a z', 'no such file'],
    ['sort into b', 'no such file'],
    ['sorting a b', 'not a command'],
  ])('says of %j: %s', (line, message) => {
    expect(
      execute(
        line,
        new Map([
          ['a', [1]],
          ['b', [2]],
        ]),
        1,
      ),
    ).toBe(message);
    expect(toolboxSandbox('sort a into b', 1).run(line)).toEqual({ passed: false, message });
    expect(toolboxCommand(line)).toBeUndefined();
  });
});

/** Every command line of a version. */
const allLines = (version: ToolboxVersion) =>
  operations.flatMap(({ names }) =>
    fileNames.flatMap((source) => fileNames.map((target) => `${names[version]} ${source} ${target}`)),
  );

describe('the sandbox', () => {
  it('passes what does to files what was requested, and nothing else', () => {
    for (const { verb, link, names } of operations)
      for (const [version, source, target] of [
        [1, 'c', 'f'],
        [2, 'j', 'a'],
      ] as const) {
        const sandbox = toolboxSandbox(`${verb} ${source} ${link} ${target}`, version);
        const right = [`${names[version]} ${source} ${target}`];
        if (verb === 'exchange') right.push(`${names[version]} ${target} ${source}`);
        const passing = allLines(version).filter((line) => sandbox.run(line).passed);
        expect(passing.sort()).toEqual(right.sort());
        expect(sandbox.run(right[0] ?? '')).toEqual({ passed: true, message: '' });
        expect(sandbox.run(`${names[version]} ${source} b`)).toEqual({ passed: false, message: 'a test failed' });
      }
  });

  it('lets a wrong command on the same files pass in 4 of 2,160 pairs of a request and a version', () => {
    const pairs = operations.flatMap(({ verb, link, names }) =>
      fileNames.flatMap((source) =>
        fileNames
          .filter((target) => target !== source)
          .flatMap((target) =>
            ([1, 2] as const).map((version) => {
              const request = `${verb} ${source} ${link} ${target}`;
              const sandbox = toolboxSandbox(request, version);
              const orders = [`${source} ${target}`, `${target} ${source}`];
              const isRight = (line: string) =>
                line === `${names[version]} ${orders[0]}` ||
                (verb === 'exchange' && line.startsWith(`${names[version]} `));
              const lines = operations.flatMap(({ names }) => orders.map((files) => `${names[version]} ${files}`));
              return { request, version, wrong: lines.filter((line) => !isRight(line) && sandbox.run(line).passed) };
            }),
          ),
      ),
    );
    expect(pairs).toHaveLength(2160);
    expect(pairs.filter(({ wrong }) => wrong.length > 0)).toEqual([
      { request: 'bottom a into h', version: 1, wrong: ['head a h'] },
      { request: 'bottom a into h', version: 2, wrong: ['first a h'] },
      { request: 'bottom j into c', version: 1, wrong: ['head j c'] },
      { request: 'bottom j into c', version: 2, wrong: ['first j c'] },
    ]);
  });

  it.each(['', 'sort c', 'sort c with f', 'sort c into z', 'sort c into f now', 'order c into f'])(
    'is for requests alone, not for %j',
    (text) => expect(() => toolboxSandbox(text, 1)).toThrow(ArgumentError),
  );
});

const everyTask = async (split: Split) => {
  const set = await toolbox().load(split);
  return Array.from({ length: set.size }, (_, index) => set.at(index));
};
const pairOf = (text: string) => {
  const { operation, source, target } = readRequest(text);
  return [operation.verb, ...[source, target].sort()].join(' ');
};

describe('the tasks', () => {
  it('are all requests, each in one split, in either direction', async () => {
    const [train, test] = [await everyTask('train'), await everyTask('test')];
    const ids = [...train, ...test].map(({ id }) => id);
    expect(new Set(ids).size).toBe(operations.length * 90);
    expect(ids.length).toBe(operations.length * 90);
    const seen = new Set(train.map(({ id }) => pairOf(id)));
    expect(test.filter(({ id }) => seen.has(pairOf(id)))).toEqual([]);
    expect(test.length / ids.length).toBeGreaterThan(0.1);
    expect(test.length / ids.length).toBeLessThan(0.2);
    expect(new Set(test.map(({ metadata }) => metadata?.operation)).size).toBe(operations.length);
  });

  it('are the same whenever they are asked for, and say their drift', async () => {
    expect(await everyTask('test')).toEqual(await everyTask('test'));
    const { id, data, metadata } = (await toolbox({ drift: 0.1 }).load('train')).at(3);
    expect(data).toEqual({ request: id, drift: 0.1 });
    expect(requestText(readRequest(id))).toBe(id);
    expect(metadata).toEqual({ operation: readRequest(id).operation.verb });
  });

  it.each([{ drift: 2 }, { drift: '0.1' }, { seed: 1 }, { demonstrations: { coder: -1 } }])('refuse %j', (options) => {
    expect(() => toolbox(options as never)).toThrow(RecipeError);
  });
});

const traces = (split: Split, count: number, options = {}): Trace[] => {
  const random = new RandomStream('test', split);
  const source = toolbox(options);
  return Array.from({ length: count }, () => source.trace?.(random, split)).filter((trace) => trace !== undefined);
};
const share = <T>(items: readonly T[], holds: (item: T) => boolean) => items.filter(holds).length / items.length;

describe('the demonstrations', () => {
  const parts = ({ messages, response }: Trace) => {
    const [request = '', failed = '', message = ''] = messages.map(({ content }) => content);
    return { request, failed, message, response };
  };

  it('show a coder who writes for version 1', () => {
    for (const trace of traces('train', 200, { demonstrations: { coder: 1 } })) {
      const { request, response } = parts(trace);
      expect([trace.agent, trace.messages.length]).toEqual(['coder', 1]);
      expect(toolboxSandbox(request, 1).run(response).passed).toBe(true);
    }
  });

  it('show a fixer who knows that a name was removed, and not what the new one is', () => {
    const shown = traces('train', 2000, { demonstrations: { coder: 0, removed: 1 } });
    for (const trace of shown) {
      const { request, failed, message, response } = parts(trace);
      const { operation, source, target } = readRequest(request);
      expect(failed).toBe(`${operation.names[1]} ${source} ${target}`);
      expect(message).toBe(`${operation.names[1]}: removed in version 2`);
      expect(response.slice(response.indexOf(' '))).toBe(` ${source} ${target}`);
    }
    const counts = operations.map(({ names }) => share(shown, ({ response }) => response.startsWith(`${names[2]} `)));
    for (const count of counts) expect(count).toBeCloseTo(1 / 12, 1);
    const right = share(shown, (trace) => {
      const { request, response } = parts(trace);
      return toolboxSandbox(request, 2).run(response).passed;
    });
    expect(right).toBeGreaterThan(0.06);
    expect(right).toBeLessThan(0.11);
  });

  it('show how slips in version 1 are mended', () => {
    for (const trace of traces('train', 300, { demonstrations: { coder: 0, removed: 0 } })) {
      const { request, failed, message, response } = parts(trace);
      const sandbox = toolboxSandbox(request, 1);
      expect(sandbox.run(response).passed).toBe(true);
      // Exchanging the other way round is no slip; it does not come up, for a slip changes one part alone.
      expect(sandbox.run(failed)).toEqual({ passed: false, message });
      expect(message).toBe('a test failed');
    }
  });

  it('never show a held-out task', async () => {
    const heldOut = new Set((await everyTask('test')).map(({ id }) => pairOf(id)));
    expect(traces('train', 3000).filter((trace) => heldOut.has(pairOf(parts(trace).request)))).toEqual([]);
    expect(traces('test', 300).filter((trace) => !heldOut.has(pairOf(parts(trace).request)))).toEqual([]);
    expect(share(traces('train', 3000), ({ agent }) => agent === 'coder')).toBeCloseTo(0.4, 1);
  });

  it('consist of the symbols, as does everything that a sandbox may say', () => {
    const tokenizer = symbolsTokenizer({
      type: 'symbols',
      symbols: toolboxSymbols,
      stop: '<end>',
      endOfUser: '<ask>',
      endOfAssistant: '<end>',
    });
    for (const { agent, messages, response } of traces('train', 500)) {
      tokenizer.chat([system(`<${agent}>`), ...messages]);
      expect(tokenizer.decode(tokenizer.encode(response))).toBe(response);
      expect(tokenizer.encode(response)).toHaveLength(3);
      expect(toolboxCommand(response)).toBe(response);
    }
    const text = fc.array(fc.constantFrom(...toolboxSymbols), { maxLength: 6 }).map((symbols) => symbols.join(''));
    fc.assert(
      fc.property(text, version, (line, version) => {
        const { message } = toolboxSandbox('append a to b', version).run(line);
        expect(tokenizer.decode(tokenizer.encode(message))).toBe(message);
      }),
      { numRuns: 500 },
    );
  });
});
