import { describe, expect, it } from 'vitest';
import { golden } from '../../../../../../test/goldens.js';
import { expectSameBits } from '../../../../../../test/support/expectations.js';
import { BLOCK, BLOCK_FORMATS, blockWords, unpackOutputs } from '../../../tensor/blocks.js';
import { FORMATS, formatName, putBlocks, unpackBlocks } from './gguf-blocks.js';

interface Blocks {
  readonly type: number;
  readonly blocks: string;
  readonly numbers: string;
}

const { formats } = golden<{ readonly formats: Readonly<Record<string, Blocks>> }>('gguf/blocks.json');

describe('blocks of a GGUF file', () => {
  it.each(Object.entries(formats))("of %s have the numbers of llama.cpp's package to the bit", (name, given) => {
    const format = FORMATS.get(given.type);
    expect(format?.name).toBe(name);
    const blocks = Uint8Array.from(Buffer.from(given.blocks, 'base64'));
    const numbers = format && unpackBlocks(format, blocks);
    expect(Buffer.from(numbers ?? []).toString('base64')).toBe(given.numbers);
  });

  it.each(BLOCK_FORMATS)('of %s have the same numbers where products read them as they are', (format) => {
    const given = formats[format] as Blocks;
    const blocks = Uint8Array.from(Buffer.from(given.blocks, 'base64'));
    const numbers = new Float32Array(Uint8Array.from(Buffer.from(given.numbers, 'base64')).buffer);
    const outputs = numbers.length / BLOCK;
    const matrix = { format, inputs: BLOCK, outputs, words: new Int32Array(0) };
    const filled = { ...matrix, words: new Int32Array(blockWords(matrix)) };
    putBlocks(filled, 0, blocks);
    expectSameBits(unpackOutputs(filled, 0, outputs), numbers);
  });

  it('are known for every format that is read in blocks', () => {
    const inBlocks = [...FORMATS.values()].filter(({ unpack }) => unpack !== undefined);
    expect(inBlocks.map(({ name }) => name).sort()).toEqual(Object.keys(formats).sort());
  });

  it('that are not read have a name for messages', () => {
    expect([2, 23, 77].map(formatName)).toEqual(['Q4_0', 'IQ4_XS', 'number 77']);
  });
});
