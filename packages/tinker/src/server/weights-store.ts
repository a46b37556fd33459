/** Weights that clients have saved: directories in PEFT's layout with the optimiser's state and a description. */
import { randomUUID } from 'node:crypto';
import { basename, dirname, join } from 'node:path';
import { DialectError } from '@drmas/engine/errors';
import { formatJson, parseWith, readJson } from '@drmas/engine/formats';
import type { Files } from '@drmas/engine/host';
import { codeOf, temporaryName } from '@drmas/engine/platform';
import { z } from 'zod';
import { CHECKPOINT_PATH } from './bodies.js';
import { ByteBudget } from './memory-budget.js';
import { refused } from './token-pass.js';

/** The purpose of saved weights: further training, or sampling. */
export type SavePurpose = 'weights' | 'sampler_weights';

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
  /** Another one for each save, also under the same name. Earlier versions of drmas wrote none. */
  id: z.string().optional(),
});

type SavedDescription = z.output<typeof description>;

export type ModelDescription = Omit<SavedDescription, 'version' | 'time' | 'id'>;

export interface SavedWeights extends SavedDescription {
  readonly directory: string;
  readonly path: string;
  /** The weights themselves: others that are saved under the same name later have another key. */
  readonly key: string;
}

/** `tinker://MODEL/PURPOSE/NAME` */
export const pathOf = (model: string, purpose: SavePurpose, name: string) => `tinker://${model}/${purpose}/${name}`;

const unknownCheckpoint = (path: string) =>
  new DialectError(404, 'unknown_checkpoint', `Checkpoint not found: ${path}`);

/** Some file systems do not allow colons in names. */
const folderOf = (model: string) => model.replaceAll(':', '-');

const PURPOSES: readonly SavePurpose[] = ['weights', 'sampler_weights'];

/** Weights to be saved: their model and name, and the most bytes that they may take. */
interface NewWeights {
  readonly model: string;
  readonly purpose: SavePurpose;
  readonly name: string;
  readonly bytes: number;
}

/** Weights stay until a client removes them; the end of a session removes none. */
export class WeightsStore {
  readonly #files: Files;
  readonly #root: string;
  readonly #disk: number;
  #budget: Promise<ByteBudget> | undefined;

  /** @param disk The bytes that all saved weights may take together */
  constructor(files: Files, root: string, disk: number) {
    this.#files = files;
    this.#root = root;
    this.#disk = disk;
  }

  /** The budget, less what lies in the store from before. */
  #space(): Promise<ByteBudget> {
    this.#budget ??= (async () => {
      let used = 0;
      for (const model of await this.#files.list(this.#root))
        for (const purpose of PURPOSES) {
          const folder = join(this.#root, model, purpose);
          for (const name of await this.#namesIn(folder)) used += await this.#bytesOf(join(folder, name));
        }
      return new ByteBudget(this.#disk, { name: 'disk', flag: '--disk' }, used);
    })().catch((error: unknown) => {
      this.#budget = undefined; // the next save looks again
      throw error;
    });
    return this.#budget;
  }

  /** The names in a directory; none in a file of another program, such as `.DS_Store`. */
  async #namesIn(directory: string): Promise<string[]> {
    return this.#files.list(directory).catch((error: unknown) => {
      if (codeOf(error) === 'ENOTDIR') return [];
      throw error;
    });
  }

  async #bytesOf(directory: string): Promise<number> {
    const names = await this.#namesIn(directory);
    const sizes = await Promise.all(names.map((name) => this.#files.size(join(directory, name))));
    return sizes.reduce((sum, size) => sum + size, 0);
  }

  /**
   * Writes weights under a name that the model has not used. Returns their path.
   * @throws DialectError 400, before anything is written, if they do not fit
   */
  async save(
    { model, purpose, name, bytes }: NewWeights,
    about: ModelDescription,
    write: (directory: string) => Promise<void>,
  ): Promise<string> {
    const parent = join(this.#root, folderOf(model), purpose);
    const directory = join(parent, name);
    if (await this.#files.exists(directory))
      throw new DialectError(409, 'exists', `Checkpoint '${name}' already exists for model '${model}'`);
    const space = await this.#space();
    const release = space.take(bytes, 'the saved state of this model');
    const temporary = join(parent, temporaryName(name));
    try {
      await this.#files.makeDirectory(temporary);
      await write(temporary);
      const saved: SavedDescription = { version: 1, ...about, time: new Date().toISOString(), id: randomUUID() };
      await this.#files.write(join(temporary, DESCRIPTION), formatJson(saved));
      await this.#files.rename(temporary, directory);
      space.change(await this.#bytesOf(directory));
    } catch (error) {
      await this.#files.remove(temporary);
      throw error;
    } finally {
      release();
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
    const read = await readJson(this.#files, file).catch(async (error: unknown) => {
      throw (await this.#files.exists(file)) ? error : unknownCheckpoint(path);
    });
    const saved = parseWith(description, read, file);
    return { ...saved, directory, path, key: `${directory} ${saved.id ?? saved.time}` };
  }

  /** The weights of a model, oldest first, without files of other programs and weights that were just removed. */
  async list(model: string): Promise<(SavedWeights & { readonly purpose: SavePurpose; readonly name: string })[]> {
    if (!/^[\w:-]{1,100}$/.test(model)) return [];
    const saved = [];
    for (const purpose of PURPOSES)
      for (const name of await this.#files.list(join(this.#root, folderOf(model), purpose))) {
        const weights = await this.open(pathOf(model, purpose, name)).catch((error: unknown) => {
          if (!(error instanceof DialectError)) throw error;
        });
        if (weights !== undefined) saved.push({ ...weights, purpose, name });
      }
    return saved.sort((a, b) => a.time.localeCompare(b.time));
  }

  /** Returns the key of the removed weights. @throws DialectError 404 if there are no weights at the path */
  async remove(path: string): Promise<string> {
    const { directory, key } = await this.open(path);
    const space = await this.#space();
    const bytes = await this.#bytesOf(directory);
    const aside = join(dirname(directory), temporaryName(basename(directory)));
    await this.#files.rename(directory, aside).catch(() => {
      throw unknownCheckpoint(path); // another request was faster
    });
    await this.#files.remove(aside);
    space.change(-bytes);
    return key;
  }

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
