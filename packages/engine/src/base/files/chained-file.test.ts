import { expect, it } from 'vitest';
import { memoryFiles } from '../../../../../test/support/memory-files.js';
import { ChainedFile } from './chained-file.js';

/** A file whose flushes end when the test says so, each with the lines that the file had when it began. */
function slowlyFlushed() {
  let lines = 0;
  const flushes: { readonly lines: number; readonly end: () => void; readonly fail: (error: Error) => void }[] = [];
  const files = {
    ...memoryFiles(new Map()),
    append: () => void lines++,
    flush: () => new Promise<void>((end, fail) => void flushes.push({ lines, end, fail })),
  };
  return { file: new ChainedFile(files, 'log.jsonl'), flushes };
}

/** A turn of the event loop: all that can go on has gone on. */
const turn = () => new Promise(setImmediate);

it('flushes lines that are appended together at once, and later ones after them', async () => {
  const { file, flushes } = slowlyFlushed();
  for (const line of ['one', 'two']) file.append(line);
  await turn();
  file.append('three');
  let done = false;
  const flushed = file.flushed().then(() => (done = true));
  await turn();
  expect(flushes.map(({ lines }) => lines)).toEqual([2]);
  flushes[0]?.end();
  await turn();
  expect([flushes.map(({ lines }) => lines), done]).toEqual([[2, 3], false]);
  flushes[1]?.end();
  await flushed;
  await file.flushed(); // nothing is left
  expect(flushes).toHaveLength(2);
});

it('takes no line after a flush that failed', async () => {
  const { file, flushes } = slowlyFlushed();
  file.append('one');
  await turn();
  flushes[0]?.fail(new Error('EIO'));
  await expect(file.flushed()).rejects.toThrow('EIO');
  expect(() => file.append('two')).toThrow('EIO');
  expect(file.cursor.lines).toBe(1);
});
