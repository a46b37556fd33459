import { describe, expect, it } from 'vitest';
import { heldOutTable, RECORDED_PAIR, type RecordedPair } from '../record-pair.js';
import { LIBRARIES } from '../support/libraries.js';
import { firstRunNumber } from './first-runs.js';
import { readPage } from './pages.js';
import { benchRatio } from './regions.js';
import { blockFaults, wrappedCommands } from './structure.js';
import { commandFaults } from './typed-commands.js';

const faults = (...lines: string[]) => blockFaults('page.md', lines.join('\n'));

describe('the blocks of a page', () => {
  it('are right as they are written here', () => {
    const table = ['| a | b \\| c |', '|---|:-:|', '| `x \\| y` | |'];
    const code = ['```ts ignore: not installed', '| a |', '#### no heading', '```'];
    expect(
      faults('# One', '', ...table, '', '- item', '', '  ```sh', '  npm test', '  ```', '', '## Two', ...code),
    ).toEqual([]);
    expect(faults('<!-- generated: x -->', ...table, '<!-- /generated -->')).toEqual([]);
  });

  it('are code that was wrapped as prose', () => {
    expect(faults('``` npm run bench   # under a minute npm', 'run bench -- kernels ```')).toEqual([
      'page.md:1: expected a fence alone on its line, with nothing but a language behind it',
      'page.md:2: expected a fence alone on its line, with nothing but a language behind it',
    ]);
  });

  it('are code without an end', () => {
    expect(faults('```sh', 'npm test', '', '```ts', 'const x = 1;')).toEqual([
      'page.md:4: a fence within the block of code that began in line 1',
      'page.md:1: the block of code that begins here does not end',
    ]);
  });

  it('are tables with rows of another length, without a head, or with text below', () => {
    expect(faults('| a | b |', '|---|---|', '| 1 |', '| 1 | 2 | 3 |', 'text')).toEqual([
      'page.md:3: a row of 1 cells in a table of 2',
      'page.md:4: a row of 3 cells in a table of 2',
      'page.md:5: text directly below a table, which becomes a row of it; expected an empty line between them',
    ]);
    expect(faults('| a | b |', '| 1 | 2 |')).toEqual(['page.md:1: a row of a table without a head']);
  });

  it('are text that a comment at the beginning of its line makes HTML', () => {
    expect(
      faults('It is', '<!-- finding: {{x}} -->5<!-- end --> of [a', 'link](b.md).', '', '<!-- x --> <!-- y -->'),
    ).toEqual(['page.md:2: text behind a comment that begins its line; expected a word before it']);
    expect(
      faults('It', 'is <!-- finding: {{x}} -->5<!-- end -->.', '<!-- finding:', '{{y}}', '-->', 'z', '<!-- end -->'),
    ).toEqual([]);
  });

  it('are headings that leave out a level', () => {
    expect(faults('# One', '### Three', '# One')).toEqual(['page.md:2: a heading of level 3 below one of level 1']);
  });
});

describe('the shell blocks of a page', () => {
  const wrapped = (...lines: string[]) => wrappedCommands('page.md', ['```sh', ...lines, '```'].join('\n'));

  it('are right with a backslash at the end of a line', () => {
    const many = ['npx drmas train math \\', '  --seed 2', 'X=1 npx drmas doctor && npx drmas runs # npx drmas chat'];
    expect(wrapped(...many, 'printf x | npx drmas chat runs/a')).toEqual([]);
    expect(wrappedCommands('page.md', '- a list that begins with npx drmas train')).toEqual([]);
  });

  it('are wrapped as prose', () => {
    expect(
      wrapped('npx drmas train math', '--seed 2', 'server --port 1 npx drmas train x', 'curl', 'https://x.y'),
    ).toEqual([
      'page.md:3: a command that does not begin on a line of its own: --seed 2',
      'page.md:4: a command that does not begin on a line of its own: server --port 1 npx drmas train x',
      'page.md:6: a command that does not begin on a line of its own: https://x.y',
    ]);
  });
});

describe('the commands of a page', () => {
  const scripts = new Set(['bench', 'verify']);

  it('exist, with their flags', () => {
    const text =
      'Type `npx drmas train\nmath --seed 2`, `drmas recipes show math --set a=1`, `drmas doctor cache --json`, `npm run bench -- kernels` or `npm run verify -- s3`.';
    expect(commandFaults('page.md', text, scripts)).toEqual([]);
    expect(commandFaults('page.md', '`drmas train math --go-on` or `drmas verify x`', scripts)).toEqual([
      'page.md: drmas train has no --go-on',
      'page.md: there is no command drmas verify',
    ]);
    expect(commandFaults('page.md', '```sh\nnpx drmas doctor # drmas --nothing\n```\n', scripts)).toEqual([]);
  });

  it('do not exist', () => {
    const text =
      'Say `npm run bnech` and `npm run verify -- quue`.\n```sh\ncd x && npx drmas trian math\nnpx drmas train math --sed=2 && ls --all\n```\n';
    expect(commandFaults('page.md', text, scripts)).toEqual([
      'page.md: there is no command drmas trian',
      'page.md: drmas train has no --sed',
      'page.md: there is no npm run bnech',
      "page.md: npm run verify has no check 'quue'",
    ]);
  });

  it('name a file that the new project does not have', () => {
    const text = (file: string) => `\`\`\`sh\nnpx drmas init my-team && cd my-team\nnpx drmas plan ${file}\n\`\`\`\n`;
    expect(commandFaults('page.md', text('team.ts'), scripts)).toEqual([]);
    expect(commandFaults('page.md', text('recipe.ts'), scripts)).toEqual([
      'page.md: drmas init writes team.ts and no recipe.ts',
    ]);
  });
});

describe('the script that packs what a reader installs', () => {
  it('packs drmas and each library', () => {
    const { scripts } = JSON.parse(readPage('package.json')) as { readonly scripts: { readonly tarballs: string } };
    const folders = Object.values(LIBRARIES).map((folder) => `-w ${folder}`);
    expect(scripts.tarballs).toBe(`npm pack ${folders.join(' ')} --include-workspace-root`);
    for (const page of ['README.md', 'docs/getting-started.md']) expect(readPage(page)).toMatch(/^npm run tarballs /m);
  });
});

describe('the README', () => {
  const text = readPage('README.md');

  it('has at most 600 words, and no marks', () => {
    expect(text.trim().split(/\s+/).length).toBeLessThanOrEqual(600);
    expect(text).not.toContain('<!--');
  });

  it('shows the output of the pair that is recorded', () => {
    expect(text).toContain(`\n${heldOutTable(JSON.parse(readPage(RECORDED_PAIR)) as RecordedPair)}\n`);
  });

  it('rounds the numbers of stored runs', () => {
    const [, drmas, grpo] =
      /Dr\. MAS and GRPO end at <!-- finding: .*? -->([\d.]+) %<!-- end -->\s+and <!-- finding: .*? -->([\d.]+) %/.exec(
        readPage('docs/getting-started.md'),
      ) ?? [];
    const plain = text.replaceAll(/\s+/g, ' ');
    expect(plain).toContain(`ends at ${Number(grpo).toFixed(0)} %.`);
    expect(plain).toContain(`ends at ${Number(drmas).toFixed(0)} %.`);
    const named = plain.replaceAll(/\]\(.*?\)/g, ']');
    const [start, end, shared] = ['start:drmas', 'score:drmas', 'score:grpo'].map((score) => {
      const token = `${score.replace(':', ':own-rates-runs/own-rates/')}-at-0\\.001`;
      const quoted = new RegExp(`\\{\\{${token}\\}\\} -->([\\d.]+) %`);
      return Number(quoted.exec(readPage('docs/real-models.md'))?.[1]).toFixed(0);
    });
    expect(named).toContain(
      `Twenty runs took the pretrained SmolLM2-135M [from ${start} to ${end} %], or ${shared} % under GRPO (no difference shown).`,
    );
    const apart = /gain:own-rates-runs\/own-rates\/drmas-at-0\.001\/grpo-at-0\.001\}\} -->[^<]*: no difference shown</;
    expect(readPage('docs/real-models.md')).toMatch(apart);
    const findings = readPage('docs/findings.md').replaceAll(/\s+/g, ' ');
    const [, points, low, high, pairs] =
      /- Dr\. MAS minus GRPO: \+([\d.]+) \[\+([\d.]+), \+([\d.]+)\] points, (\d+) pairs/.exec(findings) ?? [];
    expect(named).toContain(`[${points} points ahead] [${low}, ${high}] (${pairs} pairs, each side at its own rate;`);
    const [, best, ...interval] =
      /at 0\.001, the best rate of both, \+([\d.]+) \[([-+][\d.]+), \+([\d.]+)\]/.exec(findings) ?? [];
    expect(named).toContain(`; ${best} [${interval.join(', ')}] at the best rate of both)`);
    const [, unbuilt, least, most, seeds] =
      /reward\. They learnt .*?- Dr\. MAS minus GRPO, each at its own rate: (-[\d.]+) \[(-[\d.]+), \+([\d.]+)\] points, (\d+) pairs/.exec(
        findings,
      ) ?? [];
    const [, largest, ...ends] =
      /reward\. They learnt .*? Dr\. MAS minus GRPO is \+([\d.]+) \[\+([\d.]+), \+([\d.]+)\]/.exec(findings) ?? [];
    expect(named).toContain(
      `[often no gain is shown]: on that model ${unbuilt} [${least}, ${most}] (${seeds} pairs, own rates; ` +
        `${largest} [${ends.join(', ')}] at the largest rate, unadjusted).`,
    );
  });
});

describe('a number in a sentence', () => {
  it('is read from the first runs', () => {
    expect(firstRunNumber('shop after')).toMatch(/^\d+\.\d % \[\d+, \d+\]$/);
    expect(firstRunNumber('pair seconds')).toMatch(/^\d+ s$/);
    expect(firstRunNumber('real-long memory')).toMatch(/^\d\.\d GB$/);
    expect(() => firstRunNumber('pair after')).toThrow(
      "a first run has no 'after'; it has seconds, minutes, machine, date",
    );
    expect(() => firstRunNumber('walk after')).toThrow("has no run 'walk'");
  });

  it('is the one ratio that its words name', () => {
    expect(Number(benchRatio('decoding / drmas, blocks / transformers'))).toBeGreaterThan(0);
    expect(Number(benchRatio('AMD: decoding / drmas, blocks / transformers'))).toBeGreaterThan(0);
    expect(() => benchRatio('MAD: decoding / drmas, blocks / transformers')).toThrow('0 ratios of the bench are: MAD');
    expect(() => benchRatio('decoding / drmas, blocks / another')).toThrow('0 ratios of the bench are: decoding /');
    expect(() => benchRatio('decoding / drmas')).toThrow(/^\d+ ratios of the bench are: decoding/);
  });
});
