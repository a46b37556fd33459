/** Loads a recipe: a shipped one, or a user's file in TypeScript or JavaScript. */
import { existsSync, readdirSync } from 'node:fs';
import { register as registerHooks } from 'node:module';
import { basename, extname, isAbsolute, join, resolve, sep } from 'node:path';
import { fileURLToPath, pathToFileURL } from 'node:url';
import { messageOf, RecipeError } from '../core/errors.js';
import { isObject } from '../core/validation/objects.js';
import { codeHash } from './code-hash.js';
import type { RecipeDefinition } from './define.js';
import { suggestion } from './explain.js';
import type { RecipeCode } from './recipe.js';

export interface LoadedRecipe {
  readonly definition: RecipeDefinition;
  /** The default of the recipe's name: that of its file. */
  readonly name: string;
  /** The argument that loads the recipe again: a shipped recipe's name, or an absolute path. */
  readonly source: string;
  readonly codeHash: string;
}

/** The extension of this package's files: `.ts` when it runs from its sources, `.js` when it was compiled. */
const ownExtension = extname(fileURLToPath(import.meta.url));
const shippedDirectory = new URL('../../recipes/', import.meta.url);

/** The names of the shipped recipes, sorted. */
export function shippedRecipes(): string[] {
  return readdirSync(shippedDirectory)
    .filter((file) => file.endsWith(ownExtension) && !/\.(d|test|test-d)\.ts$/.test(file))
    .map((file) => basename(file, ownExtension))
    .sort();
}

/**
 * Loads a recipe.
 * @param checkCode Looks at the hash of the code before any of it is run, and throws where it must not be
 * @throws RecipeError when it does not exist, or its file cannot be run or exports no recipe
 */
export async function loadRecipe(nameOrFile: string, checkCode?: (codeHash: string) => void): Promise<LoadedRecipe> {
  const shipped = shippedRecipes();
  const isShipped = shipped.includes(nameOrFile);
  const file = isShipped
    ? fileURLToPath(new URL(`${nameOrFile}${ownExtension}`, shippedDirectory))
    : findFile(nameOrFile, shipped);
  const hash = await codeHash(file);
  checkCode?.(hash);
  const definition = await importDefinition(file);
  const name = basename(file, extname(file));
  return { definition, name, source: isShipped ? nameOrFile : file, codeHash: hash };
}

function findFile(nameOrFile: string, shipped: readonly string[]): string {
  const file = resolve(nameOrFile);
  if (/\.[cm]?[jt]sx?$/.test(nameOrFile)) {
    if (existsSync(file)) return file;
    throw new RecipeError(`there is no recipe file ${file}`);
  }
  throw new RecipeError(
    `there is no recipe '${nameOrFile}'${suggestion(nameOrFile, shipped)}; a file's name ends in .ts`,
  );
}

/** How tsx refuses to compile a module as CommonJS, which files are where no package.json says otherwise. */
const TOP_LEVEL_AWAIT = /Top-level await .*"cjs"/;
const MODULES = 'expected `"type": "module"` in the package.json of its folder (npm pkg set type=module)';

async function importDefinition(file: string): Promise<RecipeDefinition> {
  await prepareImport();
  let exported: unknown;
  try {
    const loaded = (await import(pathToFileURL(file).href)) as { default?: unknown };
    exported = loaded.default;
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

/** What is no code of the user's: this package, as it runs and as source maps show it, libraries, and Node. */
const packageRoot = fileURLToPath(new URL(ownExtension === '.js' ? '../../../' : '../../', import.meta.url));
const notTheirs = [
  join(packageRoot, 'src', sep),
  join(packageRoot, 'dist', sep),
  `${sep}node_modules${sep}`,
  'node:',
  'data:',
];

/** Where the user's code threw, as `file:line:column`; undefined where the error does not say. */
function threwAt(error: unknown): string | undefined {
  if (!(error instanceof Error) || typeof error.stack !== 'string') return undefined;
  const places = error.stack.split('\n').flatMap((line) => {
    const place = /^\s+at (?:.* )?\(?([^()]+:\d+:\d+)\)?$/.exec(line)?.[1];
    return place === undefined ? [] : [place.replace(/^async /, '').replace(/^file:\/\//, '')];
  });
  return places.find((place) => isAbsolute(place) && !notTheirs.some((part) => place.includes(part)));
}

function isDefinition(value: unknown): value is RecipeDefinition {
  return isObject(value) && 'type' in value && value.type === 'recipe' && 'input' in value && isObject(value.input);
}

let prepared: Promise<void> | undefined;

/** Where a recipe's code lies; undefined where a program defined it. */
export function codeOf({ source, codeHash }: LoadedRecipe): RecipeCode | undefined {
  return codeHash === '' ? undefined : { source, codeHash };
}

/** Enables Node to import TypeScript, and to find this package from files without an installed copy nearby. */
function prepareImport(): Promise<void> {
  prepared ??= (async () => {
    if (ownExtension !== '.js') return; // the loader of the sources loads recipes too
    const { register } = await import('tsx/esm/api');
    register();
    registerHooks(new URL('./package-hook.js', import.meta.url));
  })();
  return prepared;
}
