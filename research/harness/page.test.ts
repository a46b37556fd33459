import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { type Job, type Question, shellText } from './declaration.js';
import { fakePart, fakeResults, fakeTrain } from './fake-results.js';
import { figuresOf, fillMarked, fillPage } from './page.js';
import type { StoredResult } from './stored-result.js';
import { twoCurves } from './summary.js';
import { figureText, linearScale, scaleFor } from './svg.js';
import { plain } from './text.js';

const part = fakePart({ doses: [1, 4] });
const questions: Question[] = [{ id: 'made-up', asks: 'Does it?', parts: [part] }];
const full = fakeResults(part, ({ regime, variant, seed }) =>
  variant.id === 'drmas' ? 0.5 + 0.05 * (regime.dose?.value ?? 0) + seed / 1000 : 0.5,
);
const fill = (template: string, results = full) => fillPage(template, questions, results);

describe('the page', () => {
  it('fills numbers from results', () => {
    expect(fill('{{gain:made-up/dose-4/drmas}}.')).toMatch(
      /^\+21\.\d \[\+21\.\d, \+21\.\d\] points, 10 pairs, p = \.002\.$/,
    );
    expect(fill('{{score:made-up/dose-1/grpo}}')).toBe('50.0 %');
    expect(fill('{{fall:made-up/dose-4/drmas}}')).toMatch(/^\+0\.0 .* 10 pairs, p = 1: no difference shown$/);
    expect(fill('{{response:made-up/drmas/inflation}}')).toMatch(/^\+7\.\d .* points, 10 seeds, p = \.002 \(corr/);
    expect(fill('{{predicted:made-up/dose-1/inflation}}')).toMatch(/^\d+\.\d\d$/);
    expect(fill('{{rule:made-up/drmas/inflation}}')).toBe('Inflation above 2: gains in 1 of 1 regimes; else in 1 of 1');
    expect(fill('{{gain:made-up/dose-4/grpo/drmas}}')).toMatch(/^-21\.\d .* points, 10 pairs, p = \.002$/);
    expect(fill('{{holm:made-up/dose-4/drmas}}')).toBe('.002');
    expect(fill('{{progress}}')).toContain('| 60 of 60 |');
  });

  it('fills marked quotations of other pages again', () => {
    const page = (text: string) =>
      `Before.\n<!-- finding: {{score:made-up/dose-1/grpo}} -->${text}<!-- end -->\nAfter.`;
    expect(fillMarked(page('old\ntext'), fill)).toBe(page('50.0 %'));
    expect(fillMarked('no quotation', fill)).toBe('no quotation');
    const wrapped = 'Before.\n<!-- finding:\n{{score:made-up/\ndose-1/grpo}}\n-->49.0\n%<!--\nend -->\nAfter.';
    expect(fillMarked(wrapped, fill)).toBe(page('50.0 %'));
  });

  it('claims nothing before ten pairs are there', () => {
    const some = fakeResults(part, ({ seed }) => (seed < 15 ? 0.5 : undefined));
    expect(fill('{{gain:made-up/dose-4/drmas}}', some)).toBe('so far +0.0 [+0.0, +0.0] points, 4 pairs');
    const none = fakeResults(part, () => undefined);
    expect(fill('{{gain:made-up/dose-4/drmas}}', none)).toBe('nothing yet');
    expect(fill('{{part:made-up}}', none)).toContain('not run yet; `npm run findings -- made-up` does');
    expect(figuresOf(questions, none).size).toBe(0);
  });

  it('shows a part with its figure, a command that can be typed and a row for each regime', () => {
    const text = fill('{{part:made-up}}');
    expect(text).toContain('(findings/figures/made-up.svg)');
    expect(text).toContain('DRMAS_KERNELS=native-avx2 drmas plan math --play --threads 1 --seed 11 --set');
    expect(text.match(/^\| dose \d \| .* \|$/gm)).toHaveLength(2);
  });

  it('compares pairs of variants, with p adjusted for their number', () => {
    const row = (dose: number) => `made-up:dose-${dose}:drmas:grpo`;
    const one = fill(`{{compared:${row(4)}}}`).split('\n');
    expect(one).toHaveLength(3);
    expect(one[2]).toMatch(/^\| dose 4: `drmas` minus `grpo` \| \+21\.\d .* \| 10 of 10 \| \.002 \| \+21\.\d .* \|$/);
    const two = fill(`{{compared:${row(4)}+${row(1)}}}`).split('\n');
    expect(two.slice(2).map((line) => line.split(' | ')[3])).toEqual(['.0039', '.0039']);
    const none = fakeResults(part, () => undefined);
    expect(fill(`{{compared:${row(4)}}}`, none)).toBe('nothing yet');
  });

  it('shows what an episode costs, as the median over runs', () => {
    const of = (job: Job): StoredResult | undefined => {
      const result = full.of(job);
      if (result?.kind !== 'train') return result;
      const spent = { read: 100 + job.seed, written: 5, cost: 3e-6 };
      return { ...result, spent, origin: { ...result.origin, secondsPerEpisode: 0.002 } };
    };
    const lines = fill('{{spent:made-up}}', { of, isStale: () => false }).split('\n');
    expect(lines[2]).toBe('| `grpo` | 116 | 5.0 | 3.0 | 2.00 |');
    expect(
      fill(
        '{{spent:made-up}}',
        fakeResults(part, () => undefined),
      ).split('\n')[2],
    ).toBe('| `grpo` | - | - | - | - |');
  });

  it('ranks the variants of a part, and claims a difference once all its pairs are there', () => {
    const seeds = Array.from({ length: 12 }, (_, i) => i + 1);
    const ranked = {
      ...fakePart({ variants: ['drmas', 'grpo', 'rloo', 'same'], seeds }),
      ranked: { pairs: 12 },
    };
    const level: Record<string, number> = { drmas: 0.5, grpo: 0.4, rloo: 0.6, same: 0.5 };
    const rowsAt = (pairs: number) => {
      const results = fakeResults(ranked, ({ variant, seed }) =>
        seed > pairs ? undefined : (level[variant.id] ?? 0) + (variant.id === 'same' ? (seed % 2) / 50 : seed / 1000),
      );
      const text = fillPage('{{part:made-up}}', [{ id: 'made-up', asks: 'Which?', parts: [ranked] }], results);
      return text.split('\n').filter((line) => line.startsWith('| `'));
    };
    const rows = rowsAt(12);
    expect(rows.map((row) => row.split('`')[1])).toEqual(['rloo', 'same', 'drmas', 'grpo']);
    expect(rows[0]).toMatch(/^\| `rloo` (\| 60\.6 \| \+10\.0 \[.*\] \| 12 of 12 \| \.0015 \| higher ){2}\|$/);
    expect(rows[1]).toMatch(/no difference shown \|$/);
    expect(rows[3]).toMatch(/\| -10\.0 \[.*\] \| 0 of 12 \| \.0015 \| lower \|$/);
    for (const row of rowsAt(11).filter((row) => !row.includes('`drmas`'))) expect(row).toMatch(/so far \|$/);
  });

  it('keeps the zeros of a norm, and joins the pairs of two parts', () => {
    expect([170, 100, 2.5, 0.0601, 1.5, 12345].map(plain)).toEqual(['170', '100', '2.5', '0.0601', '1.5', '12300']);
    const other = { ...fakePart({ id: 'more', doses: [4], seeds: [901, 902, 903] }) };
    const both = [{ id: 'q', asks: 'Does it?', parts: [part, other] }];
    const results = {
      ...full,
      of: (job: Job) => full.of(job) ?? fakeTrain(job, job.variant.id === 'drmas' ? 0.6 : 0.5),
    };
    expect(fillPage('{{gain:made-up+more/dose-4/drmas}}', both, results)).toMatch(/, 13 pairs, /);
    expect(fillPage('{{distinct}} of {{runs}}', both, results)).toBe('22 of 46');
    expect(fill('{{below:made-up/dose-4/grpo/0.51}}')).toBe('10 of 10 runs (the lowest at 50.0 %)');
    expect(fill('{{curveHolm:made-up/dose-4/drmas}}')).toBe('.002');
  });

  it('adjusts p for the regimes whose pairs are all there, and gives the slope over these', () => {
    const part = fakePart({ doses: [1, 2, 4] });
    const results = fakeResults(part, ({ regime, variant, seed }) =>
      regime.dose?.value === 4 && seed === part.seeds.at(-1)
        ? undefined
        : variant.id === 'drmas'
          ? 0.5 + 0.1 * (regime.dose?.value ?? 0) + seed / 1000
          : 0.5,
    );
    const fill = (token: string) => fillPage(token, [{ id: 'made-up', asks: 'Which?', parts: [part] }], results);
    const rows = fill('{{regimesByHolm:made-up/drmas}}').split('\n').slice(2);
    expect(rows.map((row) => /p = (\S+) .* (\S+) \|$/.exec(row)?.slice(1))).toEqual([
      ['.002', '.0039'],
      ['.002', '.0039'],
    ]);
    expect(fill('{{doseSlope:made-up/drmas}}')).toMatch(/^\+10\.0 /);
  });

  it('refuses a token that means nothing', () => {
    for (const token of [
      '{{mean:x}}',
      '{{part:other}}',
      '{{gain:made-up/dose-9/drmas}}',
      '{{gain:made-up/dose-4/rloo}}',
      '{{rule:made-up/drmas/mismatch}}',
    ])
      expect(() => fill(token)).toThrow(/there is no |unknown: |has no variant/);
  });

  it('draws each run as a thin line and the mean of a variant as a thick one', () => {
    const shown = {
      title: 'made up',
      file: 'made-up.svg',
      part: 'made-up',
      regime: 'dose-4',
      variants: [
        ['grpo', 'one'],
        ['drmas', 'two'],
      ] as const,
    };
    const svg = twoCurves([part], full, shown) ?? '';
    expect(svg.match(/<polyline class="line thin"/g)).toHaveLength(2 * part.seeds.length);
    expect(svg.match(/<polyline class="line"/g)).toHaveLength(2);
    expect(svg.match(/<circle class="c\d point"/g)).toHaveLength(2); // the legend
    expect([...svg.matchAll(/<text class="end" .*?>(.*?)<\/text>/g)].map(([, text]) => text)).toEqual(
      ['grpo', 'drmas'].map((variant) => fill(`{{score:made-up/dose-4/${variant}}}`)),
    );
    expect(
      twoCurves(
        [part],
        fakeResults(part, () => undefined),
        shown,
      ),
    ).toBeUndefined();
  });

  it('moves a figure only if its reader takes motion, for five seconds, and shows it whole otherwise', () => {
    const axes = { x: { label: '' }, y: { label: '' } };
    const still = figureText({ ...axes, title: 'still', series: [] });
    const moving = figureText({ ...axes, title: 'moving', series: [], moving: true });
    expect(still).not.toContain('animation');
    expect(moving.match(/animation: [^}]*/g)).toEqual(['animation: open 5s linear ']);
    const asked = moving.indexOf('@media (prefers-reduced-motion: no-preference)');
    expect(moving.indexOf('animation:')).toBeGreaterThan(asked);
    expect(asked).toBeGreaterThan(0);
    for (const svg of [still, moving]) {
      expect(svg).not.toMatch(/<script|<foreignObject|href=|@import|url\((?!#)/); // GitHub shows it as an image
      expect(svg).toMatch(/<rect class="ground" width="640" height="360" rx="6"\/>/);
      expect(svg).toMatch(/prefers-color-scheme: dark\) \{[^@]*\.ground \{ fill: #0d1117 \}/);
    }
  });

  it('sets the texts of each figure inside it, without Markdown', () => {
    const name = (letters: number) => `\`${'n'.repeat(letters)}\``;
    const series = [8, 8, 30].map((letters, i) => ({ name: `${i}${name(letters)}`, points: [{ x: i, y: i }] }));
    const made = figureText({ title: 'made up', series, x: { label: '' }, y: { label: '' } });
    for (const svg of [made, ...figuresOf(questions, full).values()]) {
      for (const [, x, text = ''] of svg.matchAll(/<text x="([\d.]+)" y="[\d.]+">([^<]*)<\/text>/g))
        expect(Number(x) + 6.6 * text.length, text).toBeLessThanOrEqual(640);
      expect(svg).not.toContain('`');
    }
  });

  it('draws every point of a figure inside it', () => {
    const [svg = ''] = figuresOf(questions, full).values();
    const circles = [...svg.matchAll(/cx="([-\d.]+)" cy="([-\d.]+)" r="4"/g)].map(([, x, y]) => [Number(x), Number(y)]);
    expect(circles.length).toBeGreaterThanOrEqual(3);
    for (const [x = -1, y = -1] of circles) expect(x > 0 && x < 640 && y > 0 && y < 400).toBe(true);
    expect(svg).not.toMatch(/NaN|undefined/);
  });
});

describe('shell texts', () => {
  it('are quoted if a shell would read them differently', () => {
    expect(shellText(['a.b=1', 'x y', "it's", '[1,2]'])).toBe("a.b=1 'x y' 'it'\\''s' '[1,2]'");
  });
});

describe('a linear scale of a figure', () => {
  const value = fc
    .double({ min: -1e9, max: 1e9, noNaN: true })
    .filter((number) => number === 0 || Math.abs(number) > 1e-9);

  it('holds its values, in order, between few round ticks', () => {
    fc.assert(
      fc.property(value, value, (a, b) => {
        const [low, high] = [Math.min(a, b), Math.max(a, b)];
        fc.pre(high - low > 1e-6 * Math.max(Math.abs(low), Math.abs(high), 1e-6));
        const scale = linearScale(low, high);
        expect(scale.place(low)).toBeGreaterThanOrEqual(-1e-6);
        expect(scale.place(high)).toBeLessThanOrEqual(1 + 1e-6);
        expect(scale.place(low)).toBeLessThan(scale.place(high));
        expect(scale.ticks.length).toBeGreaterThanOrEqual(2);
        expect(scale.ticks.length).toBeLessThanOrEqual(8);
      }),
    );
  });
  it('of equal values, or none, still has a range', () => {
    for (const scale of [linearScale(3, 3), scaleFor([]), scaleFor([0])]) {
      expect(scale.ticks.length).toBeGreaterThan(1);
      for (const tick of scale.ticks) expect(Number.isFinite(scale.place(tick))).toBe(true);
    }
  });
});
