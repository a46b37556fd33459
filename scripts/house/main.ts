/**
 * Measures the structure of the sources: `npm run house`. Prints a row a measure with its goal. Ends with 1 if a
 * measure is above its goal or, if the goal is not reached yet, above the number that is held. `--list MEASURE` prints
 * the items that a measure counts.
 */
import { fileURLToPath } from 'node:url';
import { exportedNames, sharedTypeNames } from './declarations.js';
import { houseFindings, sourcesOf } from './file-rules.js';
import { filesOf } from './files.js';
import { doorsOf, folderCircles, importsOf, isTest, reachedByValue, roomArrows } from './imports.js';
import { filesOfChange, specimens } from './specimens.js';
import { functionsWithRecipe } from './walk.js';

const root = fileURLToPath(new URL('../..', import.meta.url)).replace(/\/$/, '');
const TRAIN = 'src/method/training/train.ts';
/** The program that trains in a browser tab, and the module that it takes for the package (site/vite.config.ts). */
const TAB = {
  entry: 'site/src/run/worker.ts',
  sources: /^(src|site\/src\/run|recipes)\/.*\.ts$/,
  aliases: new Map(['drmas', 'drmas/tasks'].map((name) => [name, 'site/src/run/drmas.ts'])),
};
const START = { file: 'src/runs/run/execute-run.ts', name: 'executeRun' };

interface Measure {
  readonly name: string;
  /** The goal. */
  readonly most: number;
  /** The present number, for a goal that is not reached yet. It may fall, not rise. */
  readonly held?: number;
  /** The things that are counted. */
  readonly items: readonly string[];
}

function measures(): Measure[] {
  const files = filesOf(root);
  const imports = importsOf(root, files);
  const doors = [...doorsOf(imports)].sort(([, a], [, b]) => b.size - a.size);
  const reached = [...reachedByValue(imports, TRAIN)].sort();
  const reachedInTab = reachedByValue(importsOf(root, files, TAB.sources, TAB.aliases), TAB.entry);
  return [
    { name: 'arrows between rooms', most: 80, items: [...roomArrows(imports)].sort() },
    { name: `doors of the room with most (${doors[0]?.[0]})`, most: 8, items: [...(doors[0]?.[1] ?? [])].sort() },
    { name: 'circles of folders', most: 0, items: folderCircles(imports).map((circle) => circle.join(' ')) },
    {
      name: 'engines, backends and modules of Node that train.ts reaches',
      most: 0,
      items: reached.filter((path) =>
        /^node:|^src\/(engine\/(tensor|embedded|backends|endpoint|hub)|tinker|cluster)\//.test(path),
      ),
    },
    {
      name: 'modules of Node that the page that trains reaches',
      most: 0,
      items: [...reachedInTab].filter((path) => path.startsWith('node:')).sort(),
    },
    { name: 'functions that are handed the whole recipe', most: 45, items: functionsWithRecipe(root, START) },
    {
      name: 'type names declared twice',
      most: 15,
      items: [...sharedTypeNames(root, files)].map(([name, paths]) => `${name}: ${paths.join(' ')}`),
    },
    { name: 'names that drmas exports', most: 120, items: exportedNames(root, 'src/index.ts') },
    { name: 'tracked files', most: 1900, held: 2000, items: files },
    {
      name: 'findings of the rules for files',
      most: 0,
      items: houseFindings(sourcesOf(root)).map(({ path, line, message }) => `${path}:${line}: ${message}`),
    },
    ...specimens.map((specimen) => ({
      name: `files to touch for ${specimen.what} (${specimen.example})`,
      most: specimen.most,
      ...(specimen.held !== undefined && { held: specimen.held }),
      items: filesOfChange(
        root,
        files.filter((path) => !isTest(path)),
        specimen,
      ),
    })),
  ];
}

const listed = process.argv[2] === '--list' ? process.argv[3] : undefined;
const all = measures();
if (listed !== undefined) {
  for (const { name, items } of all) if (name.includes(listed)) console.log(`${name}\n${items.join('\n')}\n`);
} else {
  const width = Math.max(...all.map(({ name }) => name.length));
  console.log(`${'measure'.padEnd(width)}   now  goal`);
  for (const { name, most, held = most, items } of all) {
    const now = items.length;
    const verdict = now > held ? `  above the ${held} that are held` : now > most ? '  not reached yet' : '';
    console.log(`${name.padEnd(width)} ${String(now).padStart(5)} ${String(most).padStart(5)}${verdict}`);
  }
  if (all.some(({ most, held = most, items }) => items.length > held)) process.exitCode = 1;
}
