/**
 * `generate`: writes the generated pages and the generated parts of hand-written pages.
 * `types`: writes the types of the options, which git does not keep, as the other commands do first.
 * `check`: fails if a generated text differs from the committed one, if a key of a recipe has no description, if a
 * TypeScript block of a page or a doc comment does not compile, if a public type has no sentence, if a link is dead,
 * if a fence or a table is broken, if a page names a command or a flag that does not exist, or if a page has an
 * absolute word and names no test that holds it.
 */
import { mkdirSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { unheldAbsolutes } from './absolutes.js';
import { disagreements } from './agreement.js';
import { apiPage, typesWithoutSentence } from './api-page.js';
import { compiled } from './code-blocks.js';
import { dependenciesPage } from './dependencies-page.js';
import { firstRunNumber } from './first-runs.js';
import { inputTypes } from './input-types.js';
import { deadLinks } from './links.js';
import { type GeneratedFile, readPage, root, withRegions } from './pages.js';
import { benchRatio, regions } from './regions.js';
import { settingsPage, undescribed } from './settings-page.js';
import { brokenBlocks } from './structure.js';
import { testVectorsText } from './test-vectors.js';
import { unknownCommands } from './typed-commands.js';

async function* generated(): AsyncGenerator<GeneratedFile> {
  yield settingsPage();
  yield dependenciesPage();
  yield await apiPage();
  yield { path: 'docs/test-vectors.json', text: testVectorsText() };
  yield* await withRegions(regions, { bench: benchRatio, run: firstRunNumber });
}

function current(path: string): string | undefined {
  try {
    return readPage(path);
  } catch {
    return undefined; // The file is new.
  }
}

function write({ path, text }: GeneratedFile): void {
  if (current(path) === text) return;
  mkdirSync(dirname(join(root, path)), { recursive: true });
  writeFileSync(join(root, path), text);
  console.log(`wrote ${path}`);
}

async function generate(): Promise<void> {
  for await (const file of generated()) write(file);
}

async function check(): Promise<void> {
  const files: GeneratedFile[] = [];
  for await (const file of generated()) files.push(file);
  const { program, errors } = compiled();
  const problems = [
    ...files.flatMap(({ path, text }) => typesWithoutSentence(path, text)),
    ...undescribed().map((key) => `recipe key ${key}: it has no description; expected .describe('...') in its schema`),
    ...files
      .filter(({ path, text }) => current(path) !== text)
      .map(({ path }) => `${path}: out of date; run npm run docs`),
    ...errors,
    ...disagreements(program),
    ...deadLinks(),
    ...brokenBlocks(),
    ...unknownCommands(),
    ...unheldAbsolutes(),
  ];
  for (const problem of problems) console.error(problem);
  process.exitCode = problems.length === 0 ? 0 : 1;
}

const [command = 'generate'] = process.argv.slice(2);
// Before the pages, some of which are made from compiled sources.
for (const file of inputTypes()) write(file);
if (command === 'generate') await generate();
else if (command === 'check') await check();
else if (command !== 'types') throw new Error(`expected generate, check or types, got ${command}`);
