/** The weights of a run's pools after its steps, and in its checkpoints. */
import { type Files, joinPath } from '@drmas/engine/host';
import type { OpenPool } from './past-versions.js';
import { type PoolStates, versionsIn } from './pool-state.js';

interface WithPools {
  readonly pools: readonly OpenPool[];
}

/** Each pool takes its policy's weights if the last complete step brings it a new version. */
export async function takeVersions({ pools }: WithPools, { step }: { readonly step: number }): Promise<void> {
  const due = pools.filter(({ spec }) => step % spec.every === 0);
  await Promise.all(due.map(({ handle, spec }) => handle.take(step, spec.keep)));
}

/** The directory of a pool in a checkpoint; no policy can have this name. */
const directoryOf = (checkpoint: string, pool: string) => joinPath(checkpoint, `${pool}.pool`);

/** Writes all versions into a checkpoint's directory. */
export async function savePools({ pools }: WithPools, files: Files, checkpoint: string): Promise<void> {
  for (const { name, handle } of pools) await handle.saveAll(files, directoryOf(checkpoint, name));
}

/** Reads the versions of a checkpoint. @throws CheckpointError */
export async function loadPools({ pools }: WithPools, states: PoolStates, checkpoint: string): Promise<void> {
  for (const { name, handle } of pools) await handle.loadAll(directoryOf(checkpoint, name), versionsIn(states, name));
}
