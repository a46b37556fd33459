/** Weights that a run or an exported agent keeps: as they are trained, and as they were before reinforcement. */
import { join } from 'node:path';
import type { BaseSpec, OwnWeights } from '@drmas/engine/contract';
import { isNoOptimizer } from '@drmas/engine/disk';
import { holdsAdapter, locateBase } from '@drmas/engine/embedded';
import { isObject, RunError } from '@drmas/engine/errors';
import { isGguf, readTemplate } from '@drmas/engine/formats';
import type { Files } from '@drmas/engine/host';
import { completeWhole, modelSchema, wholeWeights } from '@drmas/engine/model';
import { keptWarmStart } from '../../method/checkpoints.js';
import type { Checkpoint } from '../../method/store.js';

/** The weights in a directory, an adapter on its base among them. */
export async function storedWeights(files: Files, directory: string): Promise<OwnWeights> {
  if (!(await holdsAdapter(files, directory))) return { type: 'directory', directory };
  return { type: 'saved-adapter', base: await baseWeights(files, directory), directory };
}

/** The base of an adapter, with the chat template from the adapter's directory. */
async function baseWeights(files: Files, directory: string): Promise<BaseSpec> {
  const chatTemplate = await readTemplate(files, directory);
  return { type: 'directory', directory: await locateBase(files, directory), chatTemplate };
}

export interface Beginning {
  /** The weights in words: `warm start`, `base model`, `random weights`, `step 20`. */
  readonly what: string;
  readonly weights: OwnWeights;
}

/** The policy of the run, or an agent's adapter on its trunk. */
export interface FreshPolicy {
  /** Its directory in a checkpoint (`agentModelPath`). */
  readonly path: string;
  /** Its model in the recipe, with directories for names. */
  readonly model: unknown;
  /** The hash of the run's warm start; undefined without a warm start, or if the run's version recorded none. */
  readonly warmStart: string | undefined;
  /** The seed of random first weights; undefined if a warm start came before reinforcement. */
  readonly seed: number | undefined;
  readonly oldest: Checkpoint | undefined;
}

/**
 * The weights from before reinforcement, or the nearest kept weights: the warm start in the cache, the model that the
 * recipe names, an adapter's base, random weights from the seed, the oldest checkpoint.
 * @param directory The trained weights
 * @throws RunError if none is kept
 */
export async function weightsBefore(
  files: Files,
  directory: string,
  begun: FreshPolicy | undefined,
): Promise<Beginning> {
  const { path = '', model, warmStart, seed, oldest } = begun ?? {};
  const kept = warmStart === undefined ? undefined : await keptWarmStart(files, warmStart);
  if (kept !== undefined) return { what: 'warm start', weights: await storedWeights(files, join(kept, path)) };
  if (isObject(model) && model.type === 'lora' && typeof model.from === 'string')
    return { what: 'adapter it began with', weights: await storedWeights(files, model.from) };
  const onTrunk = isObject(model) && model.type !== 'lora'; // its base was trained with it
  if (!onTrunk && (await holdsAdapter(files, directory)))
    return { what: 'base model', weights: await baseWeights(files, directory) };
  const drawn = modelSchema.safeParse(model);
  if (drawn.success && drawn.data.type === 'checkpoint')
    return { what: 'model it began with', weights: wholeWeights(drawn.data, 0) };
  if (seed !== undefined && drawn.success && drawn.data.type === 'tiny-decoder')
    return { what: 'random weights', weights: wholeWeights(completeWhole(drawn.data), seed) };
  if (oldest !== undefined)
    return { what: `step ${oldest.step}`, weights: await storedWeights(files, join(oldest.directory, path)) };
  throw new RunError(
    begun === undefined
      ? `${directory} is not a run, so its earlier weights are unknown`
      : `the weights that ${path} began with are not kept, and there is no older checkpoint`,
  );
}

/** The bytes of the files that weights are read from. */
export async function bytesOf(files: Files, weights: OwnWeights): Promise<number> {
  const places =
    weights.type === 'saved-adapter'
      ? [weights.directory, ...(weights.base.type === 'directory' ? [weights.base.directory] : [])]
      : weights.type === 'directory'
        ? [weights.directory]
        : [];
  let bytes = 0;
  for (const place of places) for (const file of await weightFiles(files, place)) bytes += await files.size(file);
  return bytes;
}

/** The files of weights at a place: a GGUF file itself, or those of a directory. */
async function weightFiles(files: Files, place: string): Promise<string[]> {
  if (await isGguf(files, place)) return [place];
  const names = await files.list(place);
  return names.filter((name) => name.endsWith('.safetensors') && isNoOptimizer(name)).map((name) => join(place, name));
}
