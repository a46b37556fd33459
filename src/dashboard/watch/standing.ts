import { hostname } from 'node:os';
import { nodeFiles } from '../../base/platform.js';
import { isAlive, lockHolder } from '../../method/store.js';
import type { RunFacts, RunState } from '../../runs/analysis.js';

/**
 * A run on another machine, or without a lock file, counts as running this long after its last event, in milliseconds.
 */
const SILENCE_MS = 120_000;

/** The state of a run. It locks nothing; it reads the lock file of the process that writes the run. */
export async function runState(path: string, { state, latest }: RunFacts, now: number): Promise<RunState> {
  if (state !== 'unfinished') return state;
  const holder = await lockHolder(nodeFiles, path);
  if (holder !== undefined && holder.host === hostname()) return isAlive(holder.pid) ? 'running' : 'interrupted';
  return latest !== null && now - Date.parse(latest) < SILENCE_MS ? 'running' : 'interrupted';
}
