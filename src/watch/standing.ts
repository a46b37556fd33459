import { hostname } from 'node:os';
import { nodeFiles } from '../platform/node-files.js';
import type { RunState } from '../report/analysis/feed.js';
import type { RunFacts } from '../report/analysis/run-facts.js';
import { lockHolder } from '../store/run-lock.js';

/** A run on another machine, or without a note of its process, counts as running this long after its last event. */
const SILENCE_MS = 120_000;

/** How a run stands. Nothing is locked for it: the note of the process that writes the run is read. */
export async function runState(path: string, { state, latest }: RunFacts, now: number): Promise<RunState> {
  if (state !== 'unfinished') return state;
  const holder = await lockHolder(nodeFiles, path);
  if (holder !== undefined && holder.host === hostname()) return isAlive(holder.pid) ? 'running' : 'interrupted';
  return latest !== null && now - Date.parse(latest) < SILENCE_MS ? 'running' : 'interrupted';
}

function isAlive(pid: number): boolean {
  try {
    process.kill(pid, 0); // sends nothing, and fails where there is no such process
    return true;
  } catch (error) {
    return error instanceof Error && 'code' in error && error.code === 'EPERM';
  }
}
