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

/** The parsed JSON file at `path` below the goldens. The caller states its shape. */
export function golden<Shape>(path: string): Shape {
  return JSON.parse(readFileSync(goldenPath(path), 'utf8')) as Shape;
}
