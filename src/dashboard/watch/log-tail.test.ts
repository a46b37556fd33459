import { appendFile, mkdtemp, rm, truncate, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { LogError } from '@drmas/engine/errors';
import fc from 'fast-check';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { LogTail } from './log-tail.js';

let root: string;
beforeAll(async () => {
  root = await mkdtemp(join(tmpdir(), 'drmas-tail-'));
});
afterAll(() => rm(root, { recursive: true }));

async function readAll(tail: LogTail): Promise<{ lines: string[]; rewound: boolean }> {
  const lines: string[] = [];
  let rewound = false;
  for (;;) {
    const growth = await tail.read();
    if (growth.rewound) lines.length = 0;
    rewound ||= growth.rewound;
    lines.push(...growth.lines);
    if (!growth.more) return { lines, rewound };
  }
}

it('gives every whole line once, however a file grows', { tags: 'verify' }, async () => {
  let file = 0;
  await fc.assert(
    fc.asyncProperty(
      fc.array(fc.string({ unit: fc.constantFrom('a', 'ä', '\n', '{') }), { maxLength: 12 }),
      async (parts) => {
        const path = join(root, `${file++}`);
        const tail = new LogTail(path);
        const seen: string[] = [];
        for (const part of parts) {
          await appendFile(path, part);
          seen.push(...(await readAll(tail)).lines);
        }
        expect(seen).toEqual(parts.join('').split('\n').slice(0, -1));
      },
    ),
    { numRuns: 60 },
  );
});

it('reads a line that is longer than a piece, and many pieces', async () => {
  const path = join(root, 'long');
  const lines = ['x'.repeat(700_000), ...Array.from({ length: 9000 }, (_, i) => `line ${i} ${'y'.repeat(100)}`)];
  await writeFile(path, `${lines.join('\n')}\ntorn`);
  const tail = new LogTail(path);
  const first = await tail.read();
  expect(first.more).toBe(true);
  expect([...first.lines, ...(await readAll(tail)).lines]).toEqual(lines);
  expect(await tail.read()).toEqual({ rewound: false, lines: [], more: false });
  await appendFile(path, ' no more\n');
  expect((await readAll(tail)).lines).toEqual(['torn no more']);
});

it('begins again when the file was cut or is another one, and waits for a file that is not there yet', async () => {
  const path = join(root, 'cut');
  const tail = new LogTail(path);
  expect(await tail.read()).toEqual({ rewound: false, lines: [], more: false });
  await writeFile(path, 'one\ntwo\nthree\n');
  expect(await readAll(tail)).toEqual({ lines: ['one', 'two', 'three'], rewound: false });
  await truncate(path, 4);
  expect(await readAll(tail)).toEqual({ lines: ['one'], rewound: true });
  await writeFile(path, 'other\nand longer\n');
  expect(await readAll(tail)).toEqual({ lines: ['other', 'and longer'], rewound: true });
  await rm(path);
  expect(await readAll(tail)).toEqual({ lines: [], rewound: true });
});

it('names the line that is too long', async () => {
  const path = join(root, 'too-long');
  const tail = new LogTail(path, 1_000_000);
  await writeFile(path, 'other\nlines\nof another file\n');
  await readAll(tail);
  await writeFile(path, 'one\ntwo\n');
  await readAll(tail);
  await appendFile(path, `three\n${'x'.repeat(3_000_000)}\n`);
  await expect(readAll(tail)).rejects.toThrow(new LogError('a line is too long', { file: path, line: 4 }));
});
