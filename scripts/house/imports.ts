/** The imports between the files of `src`: rooms, arrows between rooms, doors, and files that one file reaches. */
import { existsSync, readFileSync } from 'node:fs';
import { dirname, join, normalize } from 'node:path';
import ts from 'typescript';
import { LIBRARIES, type Library } from '../support/libraries.js';

/** An import of one file by another. Paths are relative to the repository's root. */
export interface Import {
  readonly from: string;
  /** The imported file; for a package or a module of Node its name. */
  readonly to: string;
  /** The compiler removes the import: it takes types alone. */
  readonly typeOnly: boolean;
}

export const isTest = (path: string) => /\.(test|test-d)\.ts$/.test(path);

/** The TypeScript files of the libraries, and those below some folders. */
export const sourcesBelow = (...folders: readonly string[]): RegExp =>
  new RegExp(`^(${[...folders, ...Object.values(LIBRARIES).map((folder) => `${folder}/src`)].join('|')})/.*\\.ts$`);

/** The room of a file: a folder of `src`, or a package; undefined for a file beside the rooms. */
const roomOf = (path: string) => /^(?:src|packages)\/([^/]+)\//.exec(path)?.[1];

/**
 * The imports of sources, tests left out.
 * @param below The sources; those of drmas and its libraries by default
 * @param aliases The files for names of packages that a bundler replaces
 */
export function importsOf(
  root: string,
  files: readonly string[],
  below = sourcesBelow('src'),
  aliases: ReadonlyMap<string, string> = new Map(),
): Import[] {
  const sources = files.filter((path) => below.test(path) && !isTest(path));
  return sources.flatMap((from) => {
    const text = readFileSync(join(root, from), 'utf8');
    const source = ts.createSourceFile(from, text, ts.ScriptTarget.Latest, false);
    const imports: Import[] = [];
    const add = (name: string, typeOnly: boolean) =>
      imports.push({ from, to: aliases.get(name) ?? resolved(root, from, name), typeOnly });
    const visit = (node: ts.Node) => {
      if (ts.isImportDeclaration(node) && ts.isStringLiteral(node.moduleSpecifier))
        add(node.moduleSpecifier.text, takesTypesOnly(node));
      else if (ts.isExportDeclaration(node) && node.moduleSpecifier && ts.isStringLiteral(node.moduleSpecifier))
        add(node.moduleSpecifier.text, exportsTypesOnly(node));
      else if (ts.isCallExpression(node) && node.expression.kind === ts.SyntaxKind.ImportKeyword) {
        const [name] = node.arguments;
        if (name !== undefined && ts.isStringLiteral(name)) add(name.text, false);
      } else if (ts.isImportTypeNode(node) && ts.isLiteralTypeNode(node.argument)) {
        const { literal } = node.argument;
        if (ts.isStringLiteral(literal)) add(literal.text, true);
      }
      ts.forEachChild(node, visit);
    };
    visit(source);
    return imports;
  });
}

function takesTypesOnly({ importClause }: ts.ImportDeclaration): boolean {
  if (importClause === undefined) return false;
  if (importClause.isTypeOnly) return true;
  const names = importClause.namedBindings;
  return (
    importClause.name === undefined &&
    names !== undefined &&
    ts.isNamedImports(names) &&
    names.elements.every(({ isTypeOnly }) => isTypeOnly)
  );
}

function exportsTypesOnly({ isTypeOnly, exportClause }: ts.ExportDeclaration): boolean {
  if (isTypeOnly) return true;
  return (
    exportClause !== undefined &&
    ts.isNamedExports(exportClause) &&
    exportClause.elements.every((element) => element.isTypeOnly)
  );
}

function resolved(root: string, from: string, name: string): string {
  const [, library = '', door = 'index'] = /^(@drmas\/[\w-]+)(?:\/([\w-]+))?$/.exec(name) ?? [];
  if (library in LIBRARIES) return `${LIBRARIES[library as Library]}/src/${door}.ts`;
  if (!name.startsWith('.')) return name;
  const path = normalize(join(dirname(from), name)).replace(/\.js$/, '.ts');
  return existsSync(join(root, path)) ? path : `${path}x`;
}

/** The arrows between rooms: `a -> b` if a file of room a imports one of room b. */
export function roomArrows(imports: readonly Import[]): Set<string> {
  const arrows = new Set<string>();
  for (const { from, to } of imports) {
    const [a, b] = [roomOf(from), roomOf(to)];
    if (a !== undefined && b !== undefined && a !== b) arrows.add(`${a} -> ${b}`);
  }
  return arrows;
}

/** Everything that a file imports by value, directly or through others; packages and modules of Node by their names. */
export function reachedByValue(imports: readonly Import[], start: string): Set<string> {
  const next = new Map<string, string[]>();
  for (const { from, to, typeOnly } of imports) if (!typeOnly) next.set(from, [...(next.get(from) ?? []), to]);
  const reached = new Set<string>();
  const open = [start];
  for (let path = open.pop(); path !== undefined; path = open.pop()) {
    for (const to of next.get(path) ?? []) {
      if (reached.has(to)) continue;
      reached.add(to);
      open.push(to);
    }
  }
  return reached;
}

/** Groups of sibling folders of one room that import each other in a circle, each group once. */
export function folderCircles(imports: readonly Import[]): string[][] {
  const folders = new Map<string, Set<string>>();
  for (const { from, to } of imports) {
    if (!/^(src|packages)\//.test(to)) continue;
    const [a, b] = siblings(dirname(from), dirname(to));
    if (a === undefined || b === undefined) continue;
    folders.set(a, (folders.get(a) ?? new Set()).add(b));
  }
  const reach = (start: string) => {
    const seen = new Set<string>();
    const open = [start];
    for (let folder = open.pop(); folder !== undefined; folder = open.pop())
      for (const to of folders.get(folder) ?? [])
        if (!seen.has(to)) {
          seen.add(to);
          open.push(to);
        }
    return seen;
  };
  const reached = new Map([...folders.keys()].map((folder) => [folder, reach(folder)]));
  const circles = new Map<string, string[]>();
  for (const [folder, there] of reached) {
    if (!there.has(folder)) continue;
    const circle = [...there].filter((other) => reached.get(other)?.has(folder)).sort();
    circles.set(circle.join(' '), circle);
  }
  return [...circles.values()];
}

/** The two folders below the last folder that both share; undefined if one contains the other. */
function siblings(a: string, b: string): [string, string] | [undefined, undefined] {
  const [left, right] = [a.split('/'), b.split('/')];
  let shared = 0;
  while (shared < left.length && shared < right.length && left[shared] === right[shared]) shared++;
  if (shared === left.length || shared === right.length) return [undefined, undefined];
  return [left.slice(0, shared + 1).join('/'), right.slice(0, shared + 1).join('/')];
}
