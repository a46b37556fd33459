import fc from 'fast-check';
import { describe, expect, it, vi } from 'vitest';
import { beginning, columns, leftAligned, rightAligned } from './columns.js';
import { packed, shortened, table, wrap } from './text-layout.js';

describe('the columns of a text', () => {
  it.each([
    ['solver', 6],
    ['解答者', 6],
    ['かな, カナ', 10],
    ['한국어', 6],
    ['ｆｕｌｌ', 8],
    ['größe', 5],
    ['o\u0308', 1],
    ['κόσμος — …', 10],
    ['▁▅█', 3],
    ['👍', 2],
    ['👩‍🔬 x', 4],
    ['❤️', 2],
    ['🇨🇭', 2],
    ['', 0],
  ])('%s: %i', (text, expected) => expect(columns(text)).toBe(expected));
});

describe('lines with characters of two columns', () => {
  const texts = fc
    .array(fc.constantFrom('a', 'bc', ' ', '解', '者', '👍', 'e\u0301'), { maxLength: 40 })
    .map((all) => all.join(''));
  const widths = fc.integer({ min: 2, max: 30 });

  it('are not wider than they may be, and lose nothing', () => {
    fc.assert(
      fc.property(texts, widths, (text, width) => {
        const lines = wrap(text, width);
        for (const line of lines) expect(columns(line)).toBeLessThanOrEqual(width);
        expect(lines.join('').replaceAll(' ', '')).toBe(text.replaceAll(' ', ''));
        expect(lines.join('')).not.toMatch(/\p{Surrogate}/u);
        const part = beginning(text, width);
        expect(text.startsWith(part) && columns(part) <= width).toBe(true);
        expect(columns(shortened([{ text, rank: 0 }], width))).toBeLessThanOrEqual(width);
        const pieces = text.split(' ').filter((piece) => columns(piece) <= width);
        for (const line of packed(pieces, width)) expect(columns(line)).toBeLessThanOrEqual(width);
      }),
    );
  });

  it('cost as much for each column, however long the text is', () => {
    const segment = vi.spyOn(Intl.Segmenter.prototype, 'segment');
    expect(wrap('解'.repeat(4000), 20)).toHaveLength(400);
    const read = segment.mock.calls.reduce((sum, [text]) => sum + text.length, 0);
    segment.mockRestore();
    expect(read).toBeLessThan(400 * 400);
  });

  it('stand below each other in tables', () => {
    const cell = texts.map((text) => text.trim());
    fc.assert(
      fc.property(fc.array(fc.tuple(cell, cell), { minLength: 1, maxLength: 5 }), (rows) => {
        const lines = table(rows.map(([name, value]) => [`${name}|`, `${value}|`]));
        expect(new Set(lines.map(columns)).size).toBe(1);
      }),
    );
    expect(leftAligned('解', 4)).toBe('解  ');
    expect(rightAligned('解', 4)).toBe('  解');
  });
});
