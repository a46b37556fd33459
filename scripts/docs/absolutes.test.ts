import { describe, expect, it } from 'vitest';
import { absoluteFaults } from './absolutes.js';

const tests = new Map([['src/a.test.ts', "it('keeps each bit', () => {});"]]);
const faults = (...lines: string[]) =>
  absoluteFaults('page.md', lines.join('\n'), (path) => tests.get(path)).map((fault) =>
    fault.replace(/: write .*/, ''),
  );

describe('an absolute word', () => {
  it('is found with its line, in paragraphs, items, rows and headings, also over two lines', () => {
    expect(
      faults(
        '# Never twice',
        '',
        'A run is',
        'the same, bit',
        'for bit. No run has',
        'ever failed.',
        '- Nothing else.',
        '| a | none of it |',
      ),
    ).toEqual([
      'page.md:1: "Never"',
      'page.md:4: "bit for bit"',
      'page.md:5: "No run has ever"',
      'page.md:7: "Nothing"',
      'page.md:8: "none"',
    ]);
  });

  it('says what to do', () => {
    expect(absoluteFaults('page.md', 'It never fails.', () => undefined)).toEqual([
      expect.stringMatching(/^page\.md:1: "never": write what is true .* <!-- held by: path\/to\/file\.test\.ts#/),
    ]);
  });

  it('may stand in code, quotes, values of cells, and text that scripts write', () => {
    expect(
      faults(
        'Say `never`, ["never"](never.md) or {{always}}.',
        '',
        '```sh',
        'never',
        '```',
        '',
        '<!-- generated: x -->',
        'always',
        '<!-- /generated -->',
        '',
        '| a | none |',
        'It is <!-- finding: {{x}} -->always 5<!-- end -->.',
      ),
    ).toEqual([]);
  });

  it('may be taken back, a condition, or a frequency', () => {
    expect(faults('It is not always so, and nearly never. If each of them', 'says nothing, drmas waits.')).toEqual([]);
    expect(faults('It saves every 10 steps, every `n` steps and every second step.')).toEqual([]);
    expect(faults('If it ends, it always waits.', '', 'It saves every `n` there is.')).toEqual([
      'page.md:1: "always"',
      'page.md:3: "every"',
    ]);
  });
});

describe('a claim is held', () => {
  it('by a test in a comment of its block, and not of another', () => {
    const comment = '<!-- held by: src/a.test.ts#keeps each bit -->';
    expect(faults('It never', `fails. ${comment}`)).toEqual([]);
    expect(faults('It never fails.', '<!-- held by: src/a.test.ts -->')).toEqual([]);
    expect(faults('- It never fails.', `- It ends. ${comment}`)).toEqual(['page.md:1: "never"']);
    expect(faults('Write `<!-- held by: x.test.ts -->` below', 'what never fails.')).toEqual(['page.md:2: "never"']);
  });

  it('by the path of a test, or a link to a section with measurements', () => {
    expect(faults('| It never fails. | `src/a.test.ts` |')).toEqual([]);
    expect(
      faults(
        'It [never fails](research/experiments.md#the-learning-rate-of-the-baseline).',
        '',
        'It [never](../src/a.test.ts) fails.',
      ),
    ).toEqual([]);
    expect(faults('It [never fails](recipes.md#rates).')).toEqual(['page.md:1: "never"']);
  });

  it('not by a file that git does not track, that is no test, or that lacks the name', () => {
    expect(
      faults(
        'It never fails. <!-- held by: src/b.test.ts -->',
        '',
        'It never fails. <!-- held by: src/a.ts -->',
        '',
        'It never fails. <!-- held by: src/a.test.ts#loses no bit -->',
      ),
    ).toEqual([
      'page.md:1: held by src/b.test.ts: git tracks no such file',
      'page.md:3: held by src/a.ts: expected a test, or a file of test/ or scripts/',
      'page.md:5: held by src/a.test.ts: the file does not contain "loses no bit"',
    ]);
  });
});
