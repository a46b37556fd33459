import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { createReadStream } from 'node:fs';
import { mkdir, mkdtemp, open, readdir, readFile, utimes } from 'node:fs/promises';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { NumberText } from '@drmas/engine/errors';
import fc from 'fast-check';
import { describe, expect, it, vi } from 'vitest';
import { compiledProgram } from '../../../test/support/compiled-program.js';
import { temporaryRoot } from '../../../test/support/tiny-run.js';
import type { TraceSpan } from './span-fields.js';
import { TraceStore } from './trace-store.js';

const root = temporaryRoot();

const spanOf = (trace: string, id: number): TraceSpan => ({
  ...{ trace, id: String(id), name: '', start: '', scores: [], failed: false, place: { file: 'f', line: id } },
  attributes: { number: new NumberText('1.0') },
});

describe('the store of traces', () => {
  it('gives whole traces in the order of the input, from memory and from files, and leaves no file', async () => {
    const folder = join(root, 'temporary');
    await mkdir(folder, { recursive: true });
    vi.stubEnv('TMPDIR', folder);
    const input = fc.tuple(fc.array(fc.nat(9), { maxLength: 40 }), fc.constantFrom(1, 1e6, 3e6, 2e7));
    await fc.assert(
      fc.asyncProperty(input, async ([names, size]) => {
        const store = new TraceStore();
        const expected = new Map<string, TraceSpan[]>();
        for (const [id, trace] of names.entries()) {
          const span = spanOf(`t${trace}`, id);
          await store.add(span, size);
          expected.set(span.trace, [...(expected.get(span.trace) ?? []), span]);
        }
        for (const _ of [1, 2]) {
          const traces: unknown[] = [];
          for await (const trace of store.traces()) traces.push(trace);
          expect(traces).toEqual([...expected]);
        }
        expect(await readdir(folder)).toHaveLength(Number(size * names.length > 2 ** 22));
        await store.dispose();
        expect(await readdir(folder)).toEqual([]);
      }),
      { numRuns: 40 },
    );
    vi.unstubAllEnvs();
  });

  it('ends with the reason of a signal, while it takes spans and while it gives traces', async () => {
    const end = new AbortController();
    const store = new TraceStore(end.signal);
    for (const id of [1, 2, 3]) await store.add(spanOf(`t${id}`, id), 1);
    const traces = store.traces();
    expect((await traces.next()).value[0]).toBe('t1');
    end.abort(new Error('interrupted'));
    await expect(traces.next()).rejects.toThrow('interrupted');
    await expect(store.add(spanOf('t4', 4), 1)).rejects.toThrow('interrupted');
  });

  it('removes the folder of a process that was killed a day before', async () => {
    const folder = join(root, 'killed');
    vi.stubEnv('TMPDIR', folder);
    const [old, young] = [join(folder, 'drmas-traces-old'), join(folder, 'drmas-traces-young')];
    for (const each of [old, young]) await mkdir(each, { recursive: true });
    await utimes(old, new Date(0), new Date(0));
    const store = new TraceStore();
    await store.add(spanOf('t', 1), 1e9);
    await store.dispose();
    expect(await readdir(folder)).toEqual(['drmas-traces-young']);
    vi.unstubAllEnvs();
  });
});

/** The heap that an import may have, and a file that is several times larger, in megabytes. */
const [HEAP, FILE] = [96, 160];

describe('drmas import', () => {
  it('reads and writes files that are larger than its memory', { tags: 'verify', timeout: 900_000 }, async () => {
    const folder = await mkdtemp(join(root, 'large-')); // its own for each try: an import keeps existing files
    const file = join(folder, 'large.jsonl');
    const out = join(folder, 'imported');
    const handle = await open(file, 'w');
    const text = (role: string, content: string) => JSON.stringify([{ role, parts: [{ type: 'text', content }] }]);
    let traces = 0;
    for (let bytes = 0; bytes < FILE * 1e6; traces++) {
      const attributes = {
        ...{ 'gen_ai.operation.name': 'chat', 'gen_ai.agent.name': 'solver' },
        'gen_ai.input.messages': text('user', `${traces} ${'and so on '.repeat(200)}`),
        'gen_ai.output.messages': text('assistant', String(traces)),
      };
      bytes += (await handle.write(`${JSON.stringify({ traceId: `t${traces}`, spanId: 's', attributes })}\n`))
        .bytesWritten;
    }
    await handle.close();
    const program = await compiledProgram();
    const words = [`--max-old-space-size=${HEAP}`, program.main, 'import', file, '--out', out, '--yes'];
    const child = spawn(process.execPath, words, { stdio: ['ignore', 'ignore', 'pipe'] });
    let problems = '';
    child.stderr.on('data', (piece) => {
      problems += piece;
    });
    const [code] = await once(child, 'exit');
    await program.remove();
    // Not `problems: ''`: near the limit of its memory the program may warn before the collector runs.
    expect({ code, problems }).toMatchObject({ code: 0 });
    let rows = 0;
    for await (const line of createInterface({ input: createReadStream(join(out, 'demonstrations.jsonl')) }))
      rows += Number(JSON.parse(line).messages.at(-1).content === String(rows));
    expect(rows).toBe(traces);
    expect((await readFile(join(out, 'tasks.jsonl'), 'utf8')).split('\n')).toHaveLength(traces + 1);
  });
});
