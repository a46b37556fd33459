/**
 * Absolute words of the hand-written pages, such as `never`. One exception makes such a claim false, so the block that
 * holds the word (a paragraph, an item of a list, a row of a table, a heading) names what holds the claim: a test, by
 * its path or in a comment `<!-- held by: path/to/file.test.ts#part of the test's name -->`, or a measurement, by a
 * link.
 */
import { execFileSync } from 'node:child_process';
import { markdownPages, readPage, root } from './pages.js';

/** The text of a file that git tracks, or undefined if it tracks no such file. */
type TrackedText = (path: string) => string | undefined;

/** The claims of the hand-written pages that nothing holds, and the comments that name no test, one line each. */
export function unheldAbsolutes(): string[] {
  const tracked = new Set(execFileSync('git', ['ls-files', '-z'], { cwd: root, encoding: 'utf8' }).split('\0'));
  const textOf: TrackedText = (path) => (tracked.has(path) ? readPage(path) : undefined);
  const pages = [...markdownPages().filter((page) => !NOT_BY_HAND.test(page)), ...TEMPLATES];
  return pages.flatMap((page) => absoluteFaults(page, readPage(page), textOf));
}

/** The texts of pages that results fill. */
const TEMPLATES = ['research/findings.template', 'research/experiments.template'];

/** Pages about the past, plans that may not change after their runs, and pages that a script writes. */
const NOT_BY_HAND =
  /^(CHANGELOG\.md|docs\/(lab-notes|decisions|reference)\/|docs\/findings\.md$|docs\/research\/|research\/plans\/)/;

const WORDS = [
  'always|never|every(?:thing|where|one|body)?|nothing|nobody|nowhere|none|whatever',
  'exactly|identical(?:ly)?|guarantee[sd]?|impossible|completely|entirely',
  'all of|bit for bit|to the bit|without exception|any number of|no\\s[^.:;!?|]{1,80}\\sever',
];
/** Words that take the claim back (`not always`), and conditions, which claim nothing (`if every agent acts once`). */
const HEDGES = ['not|cannot|almost|nearly|hardly|mostly|next to', '(?:if|unless|whether)(?:\\s[^.,:;|]{0,80})?'];
/** `every 10 steps` is a frequency. `CODE` stands for code within a line. */
const COUNTS = [
  '\\d|N\\b|other|few|second|third|fourth|two|three|four|five|six|eight|ten',
  'CODE\\s(?:steps|updates|episodes|seconds|minutes)',
];
const oneOf = (words: readonly string[]) => words.join('|').replaceAll(' ', '\\s+');
const ABSOLUTE = new RegExp(
  `(?<hedge>\\b(?:${oneOf(HEDGES)})\\s+)?\\b(?<word>${oneOf(WORDS)})\\b(?<count>\\s+(?:${oneOf(COUNTS)}))?`,
  'gi',
);

const HELD_BY = /<!-- held by: ([^#\s]+)(?:#(.+?))? -->/g;
/** The files that `held by` may name: tests, the contracts and laws that tests share, scripts that are checks. */
const HOLDER = /\.(test|test-d)\.ts$|^(test|scripts)\//;
const MEASUREMENT_LINK = /\]\([^)\s]*(?:findings|experiments|benchmarks|benchmark-records|creditbench)\.md#[\w-]+\)/;
/** A test in a link, or as code: the package ships no tests, so its pages cannot link them. */
const TEST_PATH = /(?:\]\(|`)[\w./-]+\.test\.ts[`)]/;

/** The claims of a page that nothing holds, and its wrong comments, one line each, with page and line. */
export function absoluteFaults(page: string, text: string, textOf: TrackedText): string[] {
  return blocksOf(writtenText(text)).flatMap(({ line, text: block }) => {
    const holders = [...block.replaceAll(/`[^`]+`/g, '').matchAll(HELD_BY)];
    const wrong = holders.flatMap(([, path = '', part]) => {
      const problem = holderProblem(path, part, textOf);
      return problem === undefined ? [] : [`${page}:${line}: held by ${path}: ${problem}`];
    });
    if (holders.length > 0 || MEASUREMENT_LINK.test(block) || TEST_PATH.test(block)) return wrong;
    return claimsOf(proseOf(block)).map(
      ({ word, offset }) =>
        `${page}:${line + offset}: "${word}": write what is true without it, or name the test that holds it, as in ` +
        '<!-- held by: path/to/file.test.ts#part of its name -->',
    );
  });
}

function holderProblem(path: string, part: string | undefined, textOf: TrackedText): string | undefined {
  if (!HOLDER.test(path)) return 'expected a test, or a file of test/ or scripts/';
  const text = textOf(path);
  if (text === undefined) return 'git tracks no such file';
  return part === undefined || text.includes(part) ? undefined : `the file does not contain "${part}"`;
}

/** The absolute words of a block, each with its line after the first. */
const claimsOf = (prose: string): { readonly word: string; readonly offset: number }[] =>
  [...prose.matchAll(ABSOLUTE)].flatMap(({ 0: match, index, groups }) => {
    const { word = '', hedge, count } = groups ?? {};
    if (hedge !== undefined || (/^every$/i.test(word) && count !== undefined)) return [];
    const before = prose.slice(0, index + match.indexOf(word));
    return [{ word: word.replaceAll(/\s+/g, ' '), offset: before.split('\n').length - 1 }];
  });

/** As many lines without text. */
const blank = (text: string) => text.replaceAll(/[^\n]/g, ' ');

/** The text of a page without blocks of code, and without the parts and numbers that scripts fill in. */
const writtenText = (text: string) =>
  text
    .replaceAll(/^ *```[\s\S]*?^ *```$/gm, blank)
    .replaceAll(/^<!-- generated: [\s\S]*?^<!-- \/generated -->$/gm, blank)
    .replaceAll(/<!-- (?:finding|creditbench): [\s\S]*?<!-- end -->/g, blank);

/** A block without comments, code, quotes, targets of links, and `none` as the value of a cell. */
const proseOf = (block: string) =>
  block
    .replaceAll(/<!--[\s\S]*?-->/g, blank)
    .replaceAll(/\{\{[^}]*\}\}/g, blank)
    .replaceAll(/`[^`]+`/g, (code) => `CODE${code.replaceAll(/[^\n]/g, '')}`)
    .replaceAll(/\]\([^)\s]*\)/g, ']')
    .replaceAll(/"[^"]*"/g, blank)
    .replaceAll(/\|\s*none(?=\s*\|)/gi, '|');

interface Block {
  /** The number of its first line. */
  readonly line: number;
  readonly text: string;
}

/** The blocks of a page. An item of a list, a row of a table and a heading are blocks of their own. */
function blocksOf(text: string): Block[] {
  const blocks: Block[] = [];
  let continues = false;
  for (const [i, line] of text.split('\n').entries()) {
    const last = blocks.at(-1);
    const begins = /^\s*([-*+] |\d+\. |\||#{1,6} )/.test(line);
    if (line.trim() === '') continues = false;
    else {
      if (last !== undefined && continues && !begins) blocks.splice(-1, 1, { ...last, text: `${last.text}\n${line}` });
      else blocks.push({ line: i + 1, text: line });
      continues = !/^\s*(\||#{1,6} )/.test(line);
    }
  }
  return blocks;
}
