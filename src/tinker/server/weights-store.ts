/** Weights that clients have saved: directories in PEFT's layout with the optimiser's state and a description. */
import { join } from 'node:path';
import { z } from 'zod';
import { DialectError } from '../../base/errors.js';
import type { Files } from '../../base/host.js';
import { temporaryName } from '../../base/platform.js';
import { formatJson, parseWith, readJson } from '../../engine/formats.js';
import { CHECKPOINT_PATH } from './bodies.js';
import { refused } from './token-pass.js';

/** The purpose of saved weights: further training, or sampling. */
export type Purpose = 'weights' | 'sampler_weights';

const DESCRIPTION = 'served.json';

const description = z.object({
  version: z.literal(1),
  baseModel: z.string(),
  rank: z.int(),
  alpha: z.number(),
  attention: z.boolean(),
  feedForward: z.boolean(),
  /** ISO 8601. */
  time: z.string(),
});

export type SavedDescription = z.output<typeof description>;

/** Saved weights that exist. */
export interface SavedWeights extends SavedDescription {
  readonly directory: string;
  readonly path: string;
}

/** `tinker://MODEL/PURPOSE/NAME` */
export const pathOf = (model: string, purpose: Purpose, name: string) => `tinker://${model}/${purpose}/${name}`;

/** Some file systems do not allow colons in names. */
const folderOf = (model: string) => model.replaceAll(':', '-');

export class WeightsStore {
  readonly #files: Files;
  readonly #root: string;

  constructor(files: Files, root: string) {
    this.#files = files;
    this.#root = root;
  }

  /** Writes weights under a name that the model has not used. Returns their path. */
  async save(
    model: string,
    purpose: Purpose,
    name: string,
    about: Omit<SavedDescription, 'version' | 'time'>,
    write: (directory: string) => Promise<void>,
  ): Promise<string> {
    const parent = join(this.#root, folderOf(model), purpose);
    const directory = join(parent, name);
    if (await this.#files.exists(directory))
      throw new DialectError(409, 'exists', `Checkpoint '${name}' already exists for model '${model}'`);
    const temporary = join(parent, temporaryName(name));
    await this.#files.makeDirectory(temporary);
    try {
      await write(temporary);
      const saved: SavedDescription = { version: 1, ...about, time: new Date().toISOString() };
      await this.#files.write(join(temporary, DESCRIPTION), formatJson(saved));
      await this.#files.rename(temporary, directory);
    } catch (error) {
      await this.#files.remove(temporary);
      throw error;
    }
    return pathOf(model, purpose, name);
  }

  /** @throws DialectError 404 if there are no weights at the path */
  async open(path: string): Promise<SavedWeights> {
    const [, model, purpose, name] = CHECKPOINT_PATH.exec(path) ?? [];
    if (model === undefined || purpose === undefined || name === undefined)
      throw refused(`expected a path like tinker://MODEL/weights/NAME, got '${path.slice(0, 200)}'`);
    const directory = join(this.#root, folderOf(model), purpose, name);
    const file = join(directory, DESCRIPTION);
    if (!(await this.#files.exists(file)))
      throw new DialectError(404, 'unknown_checkpoint', `Checkpoint not found: ${path}`);
    return { ...parseWith(description, await readJson(this.#files, file), file), directory, path };
  }

  /** The weights of a model, oldest first. */
  async list(model: string): Promise<(SavedWeights & { readonly purpose: Purpose; readonly name: string })[]> {
    if (!/^[\w:-]{1,100}$/.test(model)) return [];
    const saved = [];
    for (const purpose of ['weights', 'sampler_weights'] as const)
      for (const name of await this.#files.list(join(this.#root, folderOf(model), purpose)))
        if (!name.startsWith('.')) saved.push({ ...(await this.open(pathOf(model, purpose, name))), purpose, name });
    return saved.sort((a, b) => a.time.localeCompare(b.time));
  }

  /** @throws DialectError 404 if there are no weights at the path */
  async remove(path: string): Promise<void> {
    await this.#files.remove((await this.open(path)).directory);
  }

  /** The files of an adapter, by name. */
  async adapterFiles(path: string): Promise<Map<string, Uint8Array>> {
    const { directory } = await this.open(path);
    const files = new Map<string, Uint8Array>();
    for (const name of ['adapter_config.json', 'adapter_model.safetensors']) {
      const file = join(directory, name);
      files.set(name, await this.#files.readBytes(file, 0, await this.#files.size(file)));
    }
    return files;
  }
}
