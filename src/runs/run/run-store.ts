/** A copy of a run in a folder, or in storage with S3's interface, that is updated while the run trains. */
import { join } from 'node:path';
import { messageOf, RunError, TrainingError } from '@drmas/engine/errors';
import type { Host } from '@drmas/engine/host';
import { nodeFiles } from '@drmas/engine/platform';
import { copiesAreOf, hasCopy, openObjects, RunCopy, SealedCopies, takeCopy } from '../../cluster/objects.js';
import { EVENTS, RECIPE } from '../../method/store.js';

export interface RunStore {
  /** The host of the run. If caches cannot be in the place itself, the host shares warm starts through it. */
  readonly host: Host;
  /**
   * Updates the copy to a checkpoint. If that fails, the run continues, and the next update copies both checkpoints.
   */
  readonly onCheckpoint?: () => Promise<void>;
  /** Updates the copy to the run's end. @throws TrainingError */
  readonly end: () => Promise<void>;
}

/**
 * @param place The folder or `s3://bucket/prefix`; undefined: no copy is kept
 * @param begins `new` if the place must not have a copy of the run yet
 * @throws RecipeError, StoreError when the place cannot be used; RunError when it has another run of that name
 */
export async function openRunStore(
  place: string | undefined,
  run: string,
  host: Host,
  begins?: 'new',
): Promise<RunStore> {
  if (place === undefined) return { host, end: async () => {} };
  const objects = await openObjects(place);
  if (begins === 'new' && (await hasCopy(objects, run)))
    throw new RunError(
      `${place} already has a copy of a run with the name of ${run}; resume it with --resume, or choose another name with --run`,
    );
  const resumes = begins !== 'new' && (await nodeFiles.exists(join(run, EVENTS)));
  if (resumes && !(await copiesAreOf(objects, run)))
    throw new RunError(
      `${place} has a copy of another run with the name of ${run}; choose another place, or rename the run's directory`,
    );
  const copy = new RunCopy(objects, run);
  const shared = objects.isFolder ? undefined : new SealedCopies(objects);
  const update = async () => {
    if (!(await nodeFiles.exists(join(run, RECIPE)))) return;
    await host.protect(() => copy.update());
    await copy
      .removeOlder()
      .catch((error: unknown) =>
        host.notify(`cannot remove older checkpoints of ${run} from ${place}: ${messageOf(error)}`),
      );
  };
  return {
    host: { ...host, shared },
    onCheckpoint: () =>
      update().catch((error: unknown) =>
        host.notify(`cannot copy a checkpoint of ${run}; drmas tries again at the next one: ${messageOf(error)}`),
      ),
    end: () =>
      update().catch((error: unknown) => {
        throw new TrainingError(`cannot copy the end of ${run} to ${place}: ${messageOf(error)}`);
      }),
  };
}

/** Makes a run's directory from its newest copy, if one exists. @throws RecipeError, StoreError, RunError */
export async function fetchRun(place: string, run: string): Promise<boolean> {
  return takeCopy(await openObjects(place), run);
}
