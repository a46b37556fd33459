/** Weights that a run or an exported agent keeps: as they are trained, and as they were before reinforcement. */
import { join } from 'node:path';
import { holdsAdapter, locateBase } from '../backends/embedded/state-files.js';
import type { BaseSpec, OwnWeights } from '../contract/weights-spec.js';
import { RunError } from '../core/errors.js';
import type { Files } from '../core/files.js';
import { isObject } from '../core/validation/objects.js';
import { readTemplate } from '../model/formats/tokenizer-files.js';
import { completeWhole } from '../model/model-spec.js';
import { modelSchema } from '../recipe/choices.js';
import { wholeWeights } from '../run/first-weights.js';
import type { Checkpoint } from '../store/checkpoint-files.js';
import { isNoOptimizer } from '../store/files/digests.js';
import { keptWarmStart } from '../training/warm-start/warm-start.js';

/** The weights in a directory, an adapter on its base among them. */
export async function storedWeights(files: Files, directory: string): Promise<OwnWeights> {
  if (!(await holdsAdapter(files, directory))) return { type: 'directory', directory };
  return { type: 'saved-adapter', base: await baseWeights(files, directory), directory };
}

/** The base of an adapter, with the chat template that lies beside the adapter. */
async function baseWeights(files: Files, directory: string): Promise<BaseSpec> {
  const chatTemplate = await readTemplate(files, directory);
  return { type: 'directory', directory: await locateBase(files, directory), chatTemplate };
}

/** What a policy began with. */
export interface Beginning {
  /** The weights in words: `warm start`, `base model`, `random weights`, `step 20`. */
  readonly what: string;
  readonly weights: OwnWeights;
}

/** The policy of a run whose beginning is wanted. */
export interface Begun {
  /** Its name. */
  readonly policy: string;
  /** Its model in the recipe, with directories for names. */
  readonly model: unknown;
  /** The hash of the run's warm start; undefined where there was none, or a version trained it that noted none. */
  readonly warmStart: string | undefined;
  /** The seed of first weights that are drawn at random; undefined where a warm start came before reinforcement. */
  readonly seed: number | undefined;
  /** The run's oldest checkpoint, where that is not the trained one. */
  readonly oldest: Checkpoint | undefined;
}

/**
 * The weights with which reinforcement began, or the nearest to them that are kept: the warm start in the cache, the
 * model that the recipe names, an adapter's base, what the seed draws, the oldest checkpoint.
 * @param directory The trained weights
 * @throws RunError where none is kept
 */
export async function weightsBefore(files: Files, directory: string, begun: Begun | undefined): Promise<Beginning> {
  const { policy = '', model, warmStart, seed, oldest } = begun ?? {};
  const kept = warmStart === undefined ? undefined : await keptWarmStart(files, warmStart);
  if (kept !== undefined) return { what: 'warm start', weights: await storedWeights(files, join(kept, policy)) };
  if (isObject(model) && model.type === 'lora' && typeof model.from === 'string')
    return { what: 'adapter it began with', weights: await storedWeights(files, model.from) };
  if (await holdsAdapter(files, directory)) return { what: 'base model', weights: await baseWeights(files, directory) };
  if (isObject(model) && model.type === 'checkpoint' && typeof model.path === 'string') {
    const chatTemplate = typeof model.chatTemplate === 'string' ? model.chatTemplate : undefined;
    return { what: 'model it began with', weights: { type: 'directory', directory: model.path, chatTemplate } };
  }
  const drawn = modelSchema.safeParse(model);
  if (seed !== undefined && drawn.success && drawn.data.type === 'tiny-decoder')
    return { what: 'random weights', weights: wholeWeights(completeWhole(drawn.data), seed) };
  if (oldest !== undefined)
    return { what: `step ${oldest.step}`, weights: await storedWeights(files, join(oldest.directory, policy)) };
  throw new RunError(
    begun === undefined
      ? `${directory} is no run: it does not say what its weights were before`
      : `the weights that ${policy} began with are kept nowhere, and there is no older checkpoint`,
  );
}

/** The bytes of the files that weights are read from. */
export async function bytesOf(files: Files, weights: OwnWeights): Promise<number> {
  const directories =
    weights.type === 'saved-adapter'
      ? [weights.directory, ...(weights.base.type === 'directory' ? [weights.base.directory] : [])]
      : weights.type === 'directory'
        ? [weights.directory]
        : [];
  let bytes = 0;
  for (const directory of directories)
    for (const name of await files.list(directory))
      if (name.endsWith('.safetensors') && isNoOptimizer(name)) bytes += await files.size(join(directory, name));
  return bytes;
}
