/** The golden numbers of test/goldens, computed by the original programs. Its README.md explains them. */
import { mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';

const directory = fileURLToPath(new URL('./goldens/', import.meta.url));

/** The checkpoints of test/goldens/models that are directories. */
export const goldenModels = ['llama-mini', 'qwen2-mini', 'qwen3-mini-bf16'] as const;
/** Those that are packed into one JSON file. */
export const packedModels = ['smollm3-mini', 'gemma3-mini', 'lfm2-mini', 'mistral-mini'] as const;

/** Those that a GGUF file can hold. */
export const ggufModels = [...goldenModels, 'smollm3-mini'] as const;

type GoldenModel = (typeof goldenModels | typeof packedModels)[number];

const isPacked = (name: GoldenModel): boolean => (packedModels as readonly string[]).includes(name);

/** The files of a packed checkpoint: JSON as it is, the others in base64. */
export const packedModel = (name: GoldenModel) =>
  golden<Record<string, Record<string, unknown>>>('models/packed.json')[name] ?? {};

/** The files of a checkpoint, by their paths below `m`. A packed one without a tokenizer has that of llama-mini. */
export function goldenModelFiles(name: GoldenModel): Map<string, Uint8Array> {
  const folder = `models/${isPacked(name) ? 'llama-mini' : name}`;
  const files = new Map(
    goldenFiles(folder).map((file) => [`m/${file}`, readFileSync(goldenPath(`${folder}/${file}`))]),
  );
  if (!isPacked(name)) return files;
  const packed = packedModel(name);
  for (const file of files.keys())
    if (!file.startsWith('m/tokenizer') || 'tokenizer.json' in packed) files.delete(file);
  for (const [file, content] of Object.entries(packed)) {
    const bytes = typeof content === 'string' ? Buffer.from(content, 'base64') : Buffer.from(JSON.stringify(content));
    files.set(`m/${file}`, bytes);
  }
  return files;
}

/** Writes the files of a checkpoint into `to/m`, and returns that directory. */
export function writeGoldenModel(to: string, name: GoldenModel): string {
  mkdirSync(join(to, 'm'), { recursive: true });
  for (const [file, bytes] of goldenModelFiles(name)) writeFileSync(join(to, file), bytes);
  return join(to, 'm');
}

/** The numbers of a checkpoint. The caller states the shape. */
export const goldenModelNumbers = <Shape>(name: GoldenModel): Shape =>
  isPacked(name)
    ? (packedModel(name)['golden_model.json'] as Shape)
    : golden<Shape>(`models/${name}/golden_model.json`);

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
