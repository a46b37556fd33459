import { basename, resolve } from 'node:path';
import type { RunEvent } from '../core/events.js';
import { RunDirectory } from '../store/run-directory.js';
import type { RunRecord } from '../store/run-record.js';
import { type EpisodeSample, sampleEpisodes } from './episode-sample.js';

/** All that a report knows about a run; nothing that does not lie in its directory. */
export interface RunData {
  readonly name: string;
  readonly path: string;
  readonly record: RunRecord;
  readonly events: readonly RunEvent[];
  readonly episodes: EpisodeSample;
}

/** @throws RunError when there is no run or its log is damaged; LogError naming the line of a damaged episode file */
export async function readRun(path: string, episodeBytes: number): Promise<RunData> {
  const run = await RunDirectory.open(path);
  const events = await run.events();
  return {
    name: basename(resolve(path)),
    path,
    record: run.record,
    events,
    episodes: await sampleEpisodes(path, eventsOf(events, 'spike', 'skipped'), episodeBytes),
  };
}

/** The events of some types, in order. */
export function eventsOf<Type extends RunEvent['type']>(
  events: readonly RunEvent[],
  ...types: readonly Type[]
): Extract<RunEvent, { type: Type }>[] {
  return events.filter((event): event is Extract<RunEvent, { type: Type }> =>
    (types as readonly string[]).includes(event.type),
  );
}
