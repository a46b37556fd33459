import { describe, expect, it } from 'vitest';
import { golden } from '../../../../../test/goldens.js';
import { FORMATS, formatName, unpackBlocks } from './gguf-blocks.js';

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

  it('are known for every format that is read in blocks', () => {
    const inBlocks = [...FORMATS.values()].filter(({ unpack }) => unpack !== undefined);
    expect(inBlocks.map(({ name }) => name).sort()).toEqual(Object.keys(formats).sort());
  });

  it('that are not read have a name for messages', () => {
    expect([2, 23, 77].map(formatName)).toEqual(['Q4_0', 'IQ4_XS', 'number 77']);
  });
});
