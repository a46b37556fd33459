/**
 * Measures the structure of the sources: `npm run house`. Prints a row a measure with its goal. Ends with 1 if a
 * measure is above its goal. `--list MEASURE` prints the items that a measure counts; `--sizes` prints the lines of
 * each package and room.
 */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { filesOf, houseFindings, sourcesOf } from './file-rules.js';
import { folderCircles, importsOf, reachedByValue, roomArrows, sourcesBelow } from './imports.js';
import { sizesOf, sizesText } from './sizes.js';
import { functionsWithRecipe } from './walk.js';

const root = fileURLToPath(new URL('../..', import.meta.url)).replace(/\/$/, '');
const TRAIN = 'src/method/training/train.ts';
/** The program that trains in a browser tab, and its module for the package (apps/site/vite.config.ts). */
const TAB = {
  entry: 'apps/site/src/run/worker.ts',
  sources: sourcesBelow('src', 'apps/site/src/run', 'recipes'),
  aliases: new Map(['drmas', 'drmas/tasks'].map((name) => [name, 'apps/site/src/run/drmas.ts'])),
};
const START = { file: 'src/runs/run/execute/execute-run.ts', name: 'executeRun' };

interface Measure {
  readonly name: string;
  /** The goal. */
  readonly most: number;
  /** The things that are counted. */
  readonly items: readonly string[];
}

function measures(): Measure[] {
  const files = filesOf(root);
  const imports = importsOf(root, files);
  const reached = [...reachedByValue(imports, TRAIN)].sort();
  const reachedInTab = reachedByValue(importsOf(root, files, TAB.sources, TAB.aliases), TAB.entry);
  return [
    { name: 'arrows between rooms', most: 80, items: [...roomArrows(imports)].sort() },
    { name: 'circles of folders', most: 0, items: folderCircles(imports).map((circle) => circle.join(' ')) },
    {
      name: 'engines, backends and modules of Node that train.ts reaches',
      most: 0,
      items: reached.filter((path) =>
        /^node:|^packages\/engine\/src\/(tensor|embedded|backends|endpoint|hub)\/|^packages\/tinker\/|^src\/cluster\//.test(
          path,
        ),
      ),
    },
    {
      name: 'modules of Node that the page that trains reaches',
      most: 0,
      items: [...reachedInTab].filter((path) => path.startsWith('node:')).sort(),
    },
    { name: 'functions that are handed the whole recipe', most: 45, items: functionsWithRecipe(root, START) },
    {
      name: 'findings of the rules for files',
      most: 0,
      items: houseFindings(sourcesOf(root)).map(({ path, line, message }) => `${path}:${line}: ${message}`),
    },
  ];
}

if (process.argv[2] === '--sizes') {
  const files = filesOf(root).map((path) => ({ path, text: readFileSync(join(root, path), 'utf8') }));
  console.log(sizesText(sizesOf(files)));
  process.exit();
}

const listed = process.argv[2] === '--list' ? process.argv[3] : undefined;
const all = measures();
if (listed !== undefined) {
  for (const { name, items } of all) if (name.includes(listed)) console.log(`${name}\n${items.join('\n')}\n`);
} else {
  const width = Math.max(...all.map(({ name }) => name.length));
  console.log(`${'measure'.padEnd(width)}   now  goal`);
  for (const { name, most, items } of all) {
    const now = items.length;
    const verdict = now > most ? '  above its goal' : '';
    console.log(`${name.padEnd(width)} ${String(now).padStart(5)} ${String(most).padStart(5)}${verdict}`);
  }
  if (all.some(({ most, items }) => items.length > most)) process.exitCode = 1;
}
