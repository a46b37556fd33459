/** Loads a recipe: a shipped one, or a user's file in TypeScript or JavaScript. */
import { existsSync, readdirSync, statSync } from 'node:fs';
import { basename, dirname, extname, isAbsolute, join, resolve, sep } from 'node:path';
import { fileURLToPath, pathToFileURL } from 'node:url';
import { isObject, messageOf, RecipeError, suggestion } from '@drmas/engine/errors';
import { importUserModule } from '@drmas/engine/platform';
import { libraryPaths } from '../../teams/watchdog.js';
import { codeHash, localFiles } from './code-hash.js';
import type { RecipeDefinition } from './define.js';
import { withLossModules } from './plugins/import-losses.js';
import type { RecipeCode } from './recipe.js';

export interface LoadedRecipe {
  readonly definition: RecipeDefinition;
  /** The default name of the recipe: the name of a shipped one, else the name of its file. */
  readonly name: string;
  /** The argument that loads the recipe again: a shipped recipe's name, or an absolute path. */
  readonly source: string;
  readonly codeHash: string;
}

/** The extension of this package's files: `.ts` when it runs from its sources, `.js` when it was compiled. */
const ownExtension = () => extname(fileURLToPath(import.meta.url));
const shippedDirectory = () => new URL('../../../recipes/', import.meta.url);

const shippedFile = (name: string) => fileURLToPath(new URL(`${name}/recipe${ownExtension()}`, shippedDirectory()));

export function shippedRecipes(): string[] {
  return readdirSync(shippedDirectory())
    .filter((name) => existsSync(shippedFile(name)))
    .sort();
}

/**
 * @param checkCode Gets the hash of the code before any of it runs, and throws if the code must not run
 * @throws RecipeError if the file does not exist, cannot be run or exports no recipe
 */
export async function loadRecipe(nameOrFile: string, checkCode?: (codeHash: string) => void): Promise<LoadedRecipe> {
  const shipped = shippedRecipes();
  const isShipped = shipped.includes(nameOrFile);
  const file = isShipped ? shippedFile(nameOrFile) : findFile(nameOrFile, shipped);
  const hash = await codeHash(file);
  checkCode?.(hash);
  const hashed = new Set((await localFiles(file)).keys());
  const definition = await withLossModules(await importDefinition(file), hashed);
  const name = isShipped ? nameOrFile : basename(file, extname(file));
  return { definition, name, source: isShipped ? nameOrFile : file, codeHash: hash };
}

export const isRecipeFile = (name: string): boolean => /\.[cm]?[jt]sx?$/.test(name);

function findFile(nameOrFile: string, shipped: readonly string[]): string {
  const file = resolve(nameOrFile);
  if (isRecipeFile(nameOrFile)) {
    if (existsSync(file)) return file;
    const slashed = nameOrFile.replaceAll('\\', '/');
    const hint = existsSync(slashed)
      ? `; write the path with /, as ${slashed}`
      : suggestion(basename(file), codeFilesIn(dirname(file)));
    throw new RecipeError(`there is no recipe file ${file}${hint}`);
  }
  const named = codeFilesIn(dirname(file)).find((name) => basename(name, extname(name)) === basename(file));
  if (named !== undefined)
    throw new RecipeError(`there is no recipe '${nameOrFile}'; did you mean '${join(dirname(nameOrFile), named)}'?`);
  if (existsSync(file) && statSync(file).isDirectory())
    throw new RecipeError(`${nameOrFile} is a directory without ablation.json, and a recipe is a file or a name`);
  throw new RecipeError(
    `there is no recipe '${nameOrFile}'${suggestion(nameOrFile, shipped)}; a file's name ends in .ts, .mts, .js or .mjs`,
  );
}

/** The names of the files of code in a folder, without tests and declarations. Empty if it cannot be read. */
function codeFilesIn(folder: string): string[] {
  try {
    return readdirSync(folder).filter((name) => isRecipeFile(name) && !/\.(test|config|d)\.\w+$/.test(name));
  } catch {
    return []; // there is no such folder
  }
}

/**
 * tsx's message if it cannot compile a module as CommonJS. Without `"type": "module"` in package.json, files are
 * CommonJS.
 */
const TOP_LEVEL_AWAIT = /Top-level await .*"cjs"/;
const MODULES = 'expected `"type": "module"` in the package.json of its folder (npm pkg set type=module)';

async function importDefinition(file: string): Promise<RecipeDefinition> {
  let exported: unknown;
  try {
    exported = (await importUserModule(pathToFileURL(file).href)).default;
  } catch (error) {
    const place = threwAt(error);
    const where = place === undefined ? '' : ` (at ${place})`;
    const message = messageOf(error);
    const remedy = TOP_LEVEL_AWAIT.test(message) ? `; ${MODULES}` : '';
    throw Object.assign(new RecipeError(`${file} cannot be loaded: ${message}${where}${remedy}`), { cause: error });
  }
  if (isDefinition(exported)) return exported;
  throw new RecipeError(`${file} exports no recipe: it needs \`export default defineRecipe({ ... })\``);
}

/** Stack frames outside the user's code: this package (compiled, and as source maps show it), libraries, Node. */
const packageRoot = () =>
  fileURLToPath(new URL(ownExtension() === '.js' ? '../../../../' : '../../../', import.meta.url));
const notTheirs = () => [
  join(packageRoot(), 'src', sep),
  join(packageRoot(), 'dist', sep),
  ...libraryPaths(),
  `${sep}node_modules${sep}`,
  'node:',
  'data:',
];

/** The place in the user's code that threw, as `file:line:column`. Undefined if the error does not tell. */
function threwAt(error: unknown): string | undefined {
  if (!(error instanceof Error) || typeof error.stack !== 'string') return undefined;
  const places = error.stack.split('\n').flatMap((line) => {
    // `at call (/a folder (1)/file.ts:1:2)` or `at async /a folder (1)/file.ts:1:2`
    const [, named, bare] = /^\s+at (?:.*? \((.+:\d+:\d+)\)|(?:async )?(.+:\d+:\d+))$/.exec(line) ?? [];
    const place = named ?? bare;
    if (place === undefined) return [];
    const [, address, position] = /^(file:.*?)(:\d+:\d+)$/.exec(place) ?? [];
    return [address === undefined ? place : `${fileURLToPath(address)}${position}`];
  });
  const parts = notTheirs();
  return places.find((place) => isAbsolute(place) && !parts.some((part) => place.includes(part)));
}

function isDefinition(value: unknown): value is RecipeDefinition {
  return isObject(value) && 'type' in value && value.type === 'recipe' && 'input' in value && isObject(value.input);
}

export function codeOf({ source, codeHash }: LoadedRecipe): RecipeCode | undefined {
  return codeHash === '' ? undefined : { source, codeHash };
}
