/** The golden numbers of test/goldens, computed by the original programs. Its README.md explains them. */
import { readdirSync, readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';

const directory = fileURLToPath(new URL('./goldens/', import.meta.url));

/** The checkpoints of test/goldens/models. */
export const goldenModels = ['llama-mini', 'qwen2-mini', 'qwen3-mini-bf16'] as const;

/** The absolute path of the file at `path` below the goldens. */
export const goldenPath = (path: string): string => directory + path;

/** The names of the files in a folder of the goldens, sorted. */
export const goldenFiles = (path: string): string[] => readdirSync(goldenPath(path)).sort();

const suites = new Map<string, Map<string, unknown>>();

/** The entries of a suite by their names: `losses.jsonl` has one on each line. */
function suiteNamed(suite: string): Map<string, unknown> {
  const known = suites.get(suite);
  if (known !== undefined) return known;
  const lines = readFileSync(goldenPath(`${suite}.jsonl`), 'utf8')
    .trim()
    .split('\n');
  const entries = new Map(
    lines.map((line) => JSON.parse(line) as { name: string }).map((entry) => [entry.name, entry]),
  );
  suites.set(suite, entries);
  return entries;
}

/** The names of the entries of a suite, sorted. */
export const goldenNames = (suite: string): string[] => [...suiteNamed(suite).keys()].sort();

/** The numbers at `suite/name`, or the parsed file at a path that ends in `.json`. The caller states the shape. */
export function golden<Shape>(path: string): Shape {
  if (path.endsWith('.json')) return JSON.parse(readFileSync(goldenPath(path), 'utf8')) as Shape;
  const [suite = '', name = ''] = path.split('/');
  const entry = suiteNamed(suite).get(name);
  if (entry === undefined) throw new Error(`the goldens have no ${path}`);
  return entry as Shape;
}
