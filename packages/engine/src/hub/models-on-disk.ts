/**
 * Models that other programs have on disk as GGUF files: Ollama (`manifests` name the blobs of a model) and LM Studio
 * (`publisher/repository/file.gguf`).
 */
import { readdir, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { jsonOf } from '../disk.js';
import { isObject } from '../errors.js';
import { homeDirectory } from '../platform.js';
import { statusOf } from './model-cache.js';

/** A GGUF file of another program. */
export interface ModelOnDisk {
  /** The name that `checkpoint` takes: the program's own. */
  readonly name: string;
  readonly program: 'Ollama' | 'LM Studio';
  readonly file: string;
  readonly bytes: number;
  /** The hash of the file that Ollama's tag meant when it was last pulled, `sha256:...`. */
  readonly digest?: string;
}

const DIGEST = /^sha256:[0-9a-f]{64}$/;
/** The layer with the weights; others have the licence, a template in Go's form, and settings. */
const WEIGHTS_LAYER = 'application/vnd.ollama.image.model';
const DEFAULT_REGISTRY = 'registry.ollama.ai';
const DEFAULT_NAMESPACE = 'library';
const DEFAULT_TAG = 'latest';

/** All models, sorted by program and name. Folders that do not exist or cannot be read have none. */
export async function modelsOnDisk(environment: NodeJS.ProcessEnv): Promise<ModelOnDisk[]> {
  const home = environment.HOME || homeDirectory();
  const ollama = environment.OLLAMA_MODELS
    ? [environment.OLLAMA_MODELS]
    : [join(home, '.ollama', 'models'), '/usr/share/ollama/.ollama/models'];
  const studio = [join(home, '.lmstudio', 'models'), join(home, '.cache', 'lm-studio', 'models')];
  const models = [...(await Promise.all(ollama.map(ofOllama))), ...(await Promise.all(studio.map(ofStudio)))];
  const byName = new Map<string, ModelOnDisk>();
  for (const model of models.flat()) if (!byName.has(model.name)) byName.set(model.name, model);
  return [...byName.values()];
}

/**
 * The model with this name; undefined if there is none. Names without a tag mean `latest`.
 * @param digest Another file of Ollama's than its tag means now
 */
export async function modelOnDisk(
  name: string,
  environment: NodeJS.ProcessEnv,
  digest?: string,
): Promise<ModelOnDisk | undefined> {
  const models = await modelsOnDisk(environment);
  const model = models.find((each) => each.name === name || each.name === `${name}:${DEFAULT_TAG}`);
  if (model?.digest === undefined || digest === undefined || digest === model.digest) return model;
  const file = model.file.replace(blobName(model.digest), blobName(digest));
  const bytes = await sizeOf(file);
  return bytes === undefined ? undefined : { ...model, digest, file, bytes };
}

/** Whether a recorded commit is the hash of a file of Ollama's. */
export const isDigest = (commit: string): boolean => DIGEST.test(commit);

const blobName = (digest: string) => digest.replace(':', '-');

async function sizeOf(file: string): Promise<number | undefined> {
  const status = await statusOf(file);
  return status?.isFile() ? status.size : undefined;
}

async function ofOllama(root: string): Promise<ModelOnDisk[]> {
  const models: ModelOnDisk[] = [];
  for (const [registry, namespace, model, tag] of await paths(join(root, 'manifests'), 4)) {
    const path = join(root, 'manifests', registry ?? '', namespace ?? '', model ?? '', tag ?? '');
    const digest = weightsIn(await readFile(path, 'utf8').catch(() => ''));
    if (digest === undefined) continue;
    const file = join(root, 'blobs', blobName(digest));
    const bytes = await sizeOf(file);
    if (bytes === undefined) continue;
    const owner = namespace === DEFAULT_NAMESPACE && registry === DEFAULT_REGISTRY ? '' : `${namespace}/`;
    const host = registry === DEFAULT_REGISTRY ? '' : `${registry}/`;
    models.push({ name: `${host}${owner}${model}:${tag}`, program: 'Ollama', file, bytes, digest });
  }
  return models;
}

/** The hash of the weights in a manifest; undefined if it has none. */
function weightsIn(manifest: string): string | undefined {
  const read = jsonOf(manifest);
  const layers = isObject(read) && Array.isArray(read.layers) ? read.layers : [];
  const weights: unknown = layers.find((layer) => isObject(layer) && layer.mediaType === WEIGHTS_LAYER);
  const digest = isObject(weights) ? weights.digest : undefined;
  return typeof digest === 'string' && DIGEST.test(digest) ? digest : undefined;
}

/** A repository's only file has the repository's name; of several, each has its own name. */
async function ofStudio(root: string): Promise<ModelOnDisk[]> {
  const all = await paths(root, 3);
  const files = all.filter(([, , file = '']) => file.endsWith('.gguf') && !file.startsWith('mmproj'));
  const models: ModelOnDisk[] = [];
  for (const [publisher = '', repository = '', name = ''] of files) {
    const file = join(root, publisher, repository, name);
    const bytes = await sizeOf(file);
    if (bytes === undefined) continue;
    const siblings = files.filter(([other, another]) => other === publisher && another === repository);
    const folder = `${publisher}/${repository}`;
    models.push({ name: siblings.length > 1 ? `${folder}/${name}` : folder, program: 'LM Studio', file, bytes });
  }
  return models;
}

/** The paths of `depth` names below a directory, sorted. */
async function paths(directory: string, depth: number): Promise<string[][]> {
  const names = await readdir(directory).catch(() => []);
  if (depth === 1) return names.sort().map((name) => [name]);
  const below = names.sort().map(async (name) => {
    const rest = await paths(join(directory, name), depth - 1);
    return rest.map((path) => [name, ...path]);
  });
  return (await Promise.all(below)).flat();
}
