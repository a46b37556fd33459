import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { chartLines } from './comparison-printer.js';

const values = fc.array(fc.double({ min: -2, max: 2, noNaN: true }), { minLength: 1, maxLength: 200 });
/** The plot alone, without range, steps and legend. */
const plot = (lines: readonly string[]) => lines.slice(0, -2).map((line) => line.slice(7));

describe('chartLines', () => {
  it('draws rising and falling curves at their places, and names each curve', () => {
    const rising = Array.from({ length: 40 }, (_, i) => i / 39);
    const falling = rising.map((value) => 1 - value);
    expect(
      chartLines(
        [
          { name: 'drmas', values: rising },
          { name: 'grpo', values: falling },
        ],
        27,
      ).join('\n'),
    ).toBe(
      [
        ' 1.00 +g                  d',
        '      | ggg            ddd',
        '      |    gg        dd',
        '      |      ggg  ddd',
        ' 0.50 +         **',
        '      |      ddd  ggg',
        '      |    dd        gg',
        '      | ddd            ggg',
        ' 0.00 +d                  g',
        '       step 1            40',
        '       d drmas   g grpo   * equal',
      ].join('\n'),
    );
  });

  it('fits into the columns, with a place for every curve in every column', () => {
    fc.assert(
      fc.property(values, values, fc.integer({ min: 20, max: 100 }), (a, b, width) => {
        const lines = chartLines(
          [
            { name: 'a', values: a },
            { name: 'b', values: b },
          ],
          width,
        );
        const rows = plot(lines);
        for (const line of lines.slice(0, -1)) expect(line.length).toBeLessThanOrEqual(Math.max(width, 16));
        const columns = Math.min(64, width - 7, Math.max(a.length, b.length));
        for (let column = 0; column < columns; column++) {
          const marks = rows
            .map((row) => row[column] ?? ' ')
            .join('')
            .replaceAll(' ', '');
          expect(marks.length).toBeGreaterThan(0);
          expect(['*', 'a', 'b', 'ab', 'ba']).toContain(marks);
        }
      }),
    );
  });

  it('gives names that begin alike different letters, and one curve no legend for equals', () => {
    const series = ['grpo', 'grpo-turn', '8'].map((name, i) => ({ name, values: [i, i + 1] }));
    expect(chartLines(series, 50).at(-1)).toBe('       g grpo   r grpo-turn   8 8   * equal');
    expect(chartLines([{ name: 'drmas', values: [1, 1, 1] }], 50).at(-1)).toBe('       d drmas');
  });

  it('draws nothing where there are no steps', () => {
    expect(chartLines([{ name: 'drmas', values: [] }], 50)).toEqual([]);
  });
});
