import { execFileSync } from 'node:child_process';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import {
  duration,
  grouped,
  nextCommands,
  percent,
  short,
  shortened,
  significant,
  sparkline,
  table,
  visible,
  wrap,
} from './text-layout.js';

describe('a command to paste', () => {
  it('is folded at flags if it is long, and stays the same command', () => {
    const words = [
      'train',
      'my team.ts',
      ...Array.from({ length: 6 }, (_, i) => ['--set', `training.steps=${i}`]).flat(),
    ];
    const [next, ...lines] = nextCommands(words, ['resume', 'runs/first']);
    expect(next).toBe('next');
    expect(lines.length).toBeGreaterThan(2);
    expect(Math.max(...lines.map((line) => line.length))).toBeLessThanOrEqual(80);
    expect(lines.at(-1)).toBe('  npx drmas resume runs/first');
    const pasted = execFileSync('sh', ['-c', lines.slice(0, -1).join('\n').replace('npx drmas', 'printf "%s\\n"')]);
    expect(pasted.toString().trimEnd().split('\n')).toEqual(words);
  });
});

describe('numbers', () => {
  it.each([
    [duration(0.04), '0.0 s'],
    [duration(42.4), '42 s'],
    [duration(185), '3:05 min'],
    [duration(7860), '2:11 h'],
    [duration(Number.NaN), '-'],
    [percent(0.6239), '62.4 %'],
    [grouped(150720), '150,720'],
    [grouped(999), '999'],
    [short(950), '950'],
    [short(38_400), '38k'],
    [short(4_120_000), '4.1M'],
    [significant(0.2613), '0.26'],
    [significant(0.0213), '0.0213'],
    [significant(123.4), '123'],
    [significant(3.75e5), '3.8e+5'],
    [significant(null), '-'],
    [[significant, percent, grouped, short, duration].map((show) => show(Number.NaN)).join(), '-,-,-,-,-'],
  ])('%s', (shown, expected) => expect(shown).toBe(expected));
});

describe('lines', () => {
  it('a sparkline goes from low to high', () => {
    expect(sparkline([0, 0.5, 1], 10)).toBe('▁▅█');
    expect(sparkline([0, 0, 1, 1], 2)).toBe('▁█');
    expect(sparkline([], 10)).toBe('');
  });

  it('a table keeps its columns apart', () => {
    expect(
      table([
        ['agent', 'n'],
        ['a', '10'],
      ]),
    ).toEqual(['agent   n', 'a      10']);
  });

  it('a line drops its least important parts first', () => {
    const parts = [
      { text: 'step', rank: 0 },
      { text: 'detail', rank: 2 },
      { text: 'reward', rank: 1 },
    ];
    expect(shortened(parts, 40)).toBe('step  detail  reward');
    expect(shortened(parts, 14)).toBe('step  reward');
    expect(shortened(parts, 3)).toBe('ste');
  });

  it('wrapped text fits and loses nothing but spaces', () => {
    fc.assert(
      fc.property(fc.string(), fc.integer({ min: 5, max: 60 }), (text, width) => {
        const lines = wrap(text, width);
        expect(lines.every((line) => line.length <= width)).toBe(true);
        expect(lines.join('').replaceAll(/\s/g, '')).toBe(text.replaceAll(/\s/g, ''));
      }),
    );
  });

  it('control characters never reach the terminal', () => {
    expect(visible('a\u001b[31mb\u0000\nc')).toBe('a·[31mb·\nc');
    expect(visible('ok\u202egnp.exe \u2066a\u2069 \u05d0')).toBe('ok·gnp.exe ·a· \u05d0');
  });
});
