/** A run that is kept at another place too while it is trained: a folder, or storage with S3's interface. */
import { join } from 'node:path';
import { messageOf, RunError, TrainingError } from '../core/errors.js';
import type { Host } from '../core/host.js';
import { nodeFiles } from '../platform/node-files.js';
import { openObjects } from '../store/objects/open-objects.js';
import { hasCopy, RunCopy, takeCopy } from '../store/objects/run-copies.js';
import { SealedCopies } from '../store/objects/sealed-copies.js';
import { RECIPE } from '../store/run-files.js';

export interface KeptElsewhere {
  /** The host of the run; warm starts are shared through the place where caches cannot lie in it. */
  readonly host: Host;
  /** Brings the copy up to a checkpoint. Where that fails the run goes on, and the next one brings both. */
  readonly onCheckpoint?: () => Promise<void>;
  /** Brings the copy up to the run's end. @throws TrainingError */
  readonly end: () => Promise<void>;
}

/**
 * @param place The folder or `s3://bucket/prefix`; nothing is kept where there is none
 * @param begins `new` where the run must have no copy there yet
 * @throws RecipeError, StoreError when the place cannot be used; RunError when it has a run of that name
 */
export async function keptElsewhere(
  place: string | undefined,
  run: string,
  host: Host,
  begins?: 'new',
): Promise<KeptElsewhere> {
  if (place === undefined) return { host, end: async () => {} };
  const objects = await openObjects(place);
  if (begins === 'new' && (await hasCopy(objects, run)))
    throw new RunError(`${place} has a copy of a run named like ${run}: --go-on goes on with it, --run names another`);
  const copy = new RunCopy(objects, run);
  const shared = objects.isFolder ? undefined : new SealedCopies(objects);
  const update = async () => {
    if (!(await nodeFiles.exists(join(run, RECIPE)))) return;
    await host.protect(() => copy.update());
    await copy
      .removeOlder()
      .catch((error: unknown) => host.notify(`older checkpoints of ${run} stay at ${place}: ${messageOf(error)}`));
  };
  return {
    host: { ...host, shared },
    onCheckpoint: () =>
      update().catch((error: unknown) =>
        host.notify(`a checkpoint of ${run} was not copied, the next one will be: ${messageOf(error)}`),
      ),
    end: () =>
      update().catch((error: unknown) => {
        throw new TrainingError(`${run} was not copied to ${place} to its end: ${messageOf(error)}`);
      }),
  };
}

/** Makes a run's directory from its newest copy, where there is one. @throws RecipeError, StoreError, RunError */
export async function takeFrom(place: string, run: string): Promise<boolean> {
  return takeCopy(await openObjects(place), run);
}
