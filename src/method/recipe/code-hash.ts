import { createHash } from 'node:crypto';
import { dirname, extname, relative, resolve } from 'node:path';
import { codeOf, nodeFiles } from '@drmas/engine/platform';

/**
 * The specifiers of static imports, re-exports, `import('...')` and `lossFrom(import.meta.resolve('...'))`. A match
 * inside a comment only costs one more look-up.
 */
const specifiers =
  /(?:\b(?:from|import)\s*\(?|\blossFrom\(\s*(?:import\.meta\.resolve|new URL)\()\s*(['"])(\.{1,2}\/[^'"\n]+)\1/g;

/** The files that a specifier may mean: TypeScript is imported under the name of its output. */
function candidates(path: string): string[] {
  const stem = path.slice(0, path.length - extname(path).length);
  switch (extname(path)) {
    case '.js':
      return [path, `${stem}.ts`, `${stem}.tsx`];
    case '.mjs':
      return [path, `${stem}.mts`];
    case '':
      return [`${path}.ts`, `${path}.js`, `${path}/index.ts`, `${path}/index.js`];
    default:
      return [path];
  }
}

/** The file and all files that it imports by relative path, directly or indirectly, with their contents. */
export async function localFiles(entry: string): Promise<Map<string, string>> {
  const files = new Map<string, string>();
  const waiting = [[entry]];
  for (let next = waiting.pop(); next !== undefined; next = waiting.pop()) {
    for (const path of next) {
      if (files.has(path)) break;
      const text = await readIfThere(path);
      if (text === undefined) continue;
      files.set(path, text);
      for (const match of text.matchAll(specifiers)) {
        waiting.push(candidates(resolve(dirname(path), match[2] ?? '')));
      }
      break;
    }
  }
  return files;
}

async function readIfThere(path: string): Promise<string | undefined> {
  try {
    return await nodeFiles.readText(path);
  } catch (error) {
    if (codeOf(error) === 'ENOENT' || codeOf(error) === 'EISDIR') return undefined;
    throw error;
  }
}

/**
 * The SHA-256 of the file and its local imports, with their names relative to the file, so that moving a whole folder
 * does not change it.
 */
export async function codeHash(file: string): Promise<string> {
  const entry = resolve(file);
  const hash = createHash('sha256');
  const files = [...(await localFiles(entry))].map(([path, text]) => [relative(dirname(entry), path), text] as const);
  for (const [name, text] of files.sort(([a], [b]) => (a < b ? -1 : 1))) hash.update(JSON.stringify([name, text]));
  return hash.digest('hex');
}
