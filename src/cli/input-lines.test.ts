import { PassThrough, Readable } from 'node:stream';
import { RunError } from '@drmas/engine/errors';
import { expect, it } from 'vitest';
import { inputLines } from './input-lines.js';

const MOST = 2 ** 24;

async function read(input: Readable): Promise<string[]> {
  const lines: string[] = [];
  for await (const line of inputLines({ input, output: new PassThrough() }, false).lines) lines.push(line);
  return lines;
}

/** Pieces of a text as a pipe gives them. */
const pieces = (text: string, size: number) =>
  Readable.from(
    (function* () {
      for (let at = 0; at < text.length; at += size) yield Buffer.from(text.slice(at, at + size), 'latin1');
    })(),
  );

it.each(['\n', '\r\n'])('reads lines that end with %j, however the input is cut', async (end) => {
  const lines = ['', 'a', 'b'.repeat(700), '', 'c'];
  for (const size of [1, 2, 7, 699, 5000]) {
    expect(await read(pieces(`\xef\xbb\xbf${lines.join(end)}`, size))).toEqual(lines);
    expect(await read(pieces(`${lines.join(end)}${end}`, size))).toEqual(lines);
  }
});

it('reads a line of 16 MiB, and many of them', async () => {
  const line = 'x'.repeat(MOST);
  expect((await read(pieces(`${line}\n${line}`, 2 ** 16))).map(({ length }) => length)).toEqual([MOST, MOST]);
});

const endless = (piece: string) =>
  new Readable({
    read: function (this: Readable) {
      this.push(piece);
    },
  });
const broken = (error: Error) =>
  new Readable({
    read: function (this: Readable) {
      this.destroy(error);
    },
  });

it.each([
  ['zeros without end', endless('\0'.repeat(2 ** 16)), /^stdin: a line has more than 16 MiB: expected lines of text$/],
  ['a long line after others', pieces(`a\n${'x'.repeat(MOST + 1)}\nb\n`, 2 ** 16), /^stdin: a line has more than/],
  ['a long piece', pieces('x'.repeat(MOST + 1), MOST + 1), /^stdin: a line has more than/],
  ['an input that fails', broken(new Error('EIO: i/o error, read')), /^stdin: cannot be read: EIO: i\/o error, read$/],
])('refuses %s', async (_, input, message) => {
  const failed = read(input).then((lines) => lines.length); // a failure shows no 16 MiB
  await expect(failed).rejects.toThrow(message);
  await expect(failed).rejects.toBeInstanceOf(RunError);
});
