/** The examples of the package, and the files that `drmas init --example` writes for one. */
import { readdirSync, readFileSync, statSync } from 'node:fs';
import { basename, dirname, extname, join } from 'node:path';
import { ArgumentError, suggestion } from '@drmas/engine/errors';
import { packageRoot } from './project-manifest.js';

const folder = join(packageRoot, 'examples');

/** An example: a file of `examples`, or one of its folders. */
export interface Example {
  readonly files: readonly { readonly name: string; readonly text: string }[];
  /** The files that `drmas train` takes, `recipe.ts` alone if there is one. */
  readonly recipes: readonly string[];
  /** The packages that its code imports, without Node's own. */
  readonly packages: readonly string[];
}

export const exampleNames = (): string[] =>
  readdirSync(folder, { withFileTypes: true })
    .filter((entry) => entry.isDirectory() || extname(entry.name) === '.ts')
    .map(({ name }) => basename(name, '.ts'))
    .sort();

/**
 * The files of an example for a folder of its own. Files that it takes from other examples lie beside its own, and
 * shipped recipes are imported from the package.
 * @param extension The extension of TypeScript files that are ES modules in the project
 * @throws ArgumentError with the known names, if there is no example of this name
 */
export function exampleOf(name: string, extension: 'ts' | 'mts'): Example {
  const names = exampleNames();
  if (!names.includes(name))
    throw new ArgumentError(`there is no example '${name}'${suggestion(name, names)} (known: ${names.join(', ')})`);
  const place = join(folder, name);
  const paths = isFolder(place) ? filesIn(place) : [`${place}.ts`];
  for (const path of paths) paths.push(...borrowed(path).filter((other) => !paths.includes(other)));
  const files = paths.map((path) => ({ name: placed(path, extension), text: textFor(path, extension) }));
  const recipes = files.filter(({ text }) => /^export default defineRecipe\(/m.test(text)).map((file) => file.name);
  const only = recipes.filter((file) => file.startsWith('recipe.'));
  return { files, recipes: only.length > 0 ? only : recipes, packages: [...new Set(paths.flatMap(packagesOf))].sort() };
}

const isFolder = (path: string) => statSync(path, { throwIfNoEntry: false })?.isDirectory() === true;
/** Python and editors leave folders behind, which are no part of an example. */
const filesIn = (path: string) =>
  readdirSync(path, { withFileTypes: true }).flatMap((entry) => (entry.isFile() ? [join(path, entry.name)] : []));

/** Imports of a file of another example: `from '../ai-sdk/orders.js'`. */
const BORROWED = /(?<=from ')\.\.\/(?!recipes\/)([\w-]+\/[\w-]+)\.js(?=')/g;
const RECIPES = /(?<=from ')(?:\.\.\/)+recipes\/([\w/-]+)\.js(?=')/g;

const isCode = (path: string) => /\.m?ts$/.test(path);
const borrowed = (path: string): string[] =>
  isCode(path) ? [...read(path).matchAll(BORROWED)].map(([, file]) => join(dirname(dirname(path)), `${file}.ts`)) : [];

const placed = (path: string, extension: 'ts' | 'mts') => basename(path).replace(/\.ts$/, `.${extension}`);

function textFor(path: string, extension: 'ts' | 'mts'): string {
  const text = read(path);
  if (!isCode(path)) return text;
  const here = text
    .replaceAll(BORROWED, (_, file: string) => `./${basename(file)}.js`)
    .replaceAll(RECIPES, 'drmas/recipes/$1')
    .replaceAll(/\bexamples\/(?:[\w-]+\/)?(?=[\w-]+\.(?:ts|py)\b)/g, '');
  if (extension === 'ts') return here;
  return here.replaceAll(/(?<=')(\.\/[\w-]+)\.(js|ts)(?=')/g, '$1.m$2').replaceAll(/(?<= )([\w-]+)\.ts\b/g, '$1.mts');
}

const IMPORTED = /^(?:import|export) [^;]*?from '((?:@[\w.-]+\/)?[\w.-]+)(?:\/[^']*)?'/gm;
function packagesOf(path: string): string[] {
  if (!/\.m?[jt]s$/.test(path)) return [];
  const text = read(path);
  const imported = [...text.matchAll(IMPORTED)].flatMap(([, name = '']) => (/^(?:\.|node:)/.test(name) ? [] : [name]));
  return text.includes('mcpTools(') ? [...imported, MCP_CLIENT] : imported;
}

/** An optional package of drmas, which `mcpTools` loads. */
const MCP_CLIENT = '@modelcontextprotocol/client';

const read = (path: string) => readFileSync(path, 'utf8');
