import { isObject } from '../../base/errors.js';
import type { RunEvent, Spike } from '../../base/events.js';
import type { RunRecord } from '../../method/store.js';
import { changedRecords, RunDirectory } from '../../method/store.js';
import type { EmbeddedRun, TextPool } from '../../runs/analysis.js';
import { RunFactsReader } from '../../runs/analysis.js';
import { sampleEpisodes } from './episode-sample.js';
import type { FoundRun } from './find-runs.js';

/** Significant digits of the numbers in a report. Charts show no more. */
const DIGITS = 6;

/** A run in a report, with its record. */
export interface ReportedRun {
  readonly record: RunRecord;
  /** One line about files that differ from their digests. */
  readonly changed: string | undefined;
  readonly embedded: EmbeddedRun;
}

/**
 * Reads the data of a run's report, only from the run's directory.
 * @throws RunError when there is no run or its log is damaged; LogError naming the line of a damaged episode file
 */
export async function readRun(
  { path, name, ablation = null }: Pick<FoundRun, 'path' | 'name'> & { readonly ablation?: string | undefined | null },
  episodeBytes: number,
  pool: TextPool,
): Promise<ReportedRun> {
  const run = await RunDirectory.open(path);
  const changed = await changedRecords(path);
  const events = [...(await run.events()), ...changeEvents(changed)];
  const reader = new RunFactsReader(run.record.resolved);
  for (const event of events) reader.add(event);
  const { facts } = reader;
  const spikes = events.filter((event): event is Spike & RunEvent => /^(spike|skipped)$/.test(event.type));
  const { files, shown, kept } = await sampleEpisodes(path, spikes, episodeBytes, pool);
  const state = facts.state === 'unfinished' ? 'interrupted' : facts.state;
  return {
    record: run.record,
    changed,
    embedded: {
      listed: { name, ablation, ...facts, state },
      record: run.record,
      events: lean(events),
      files,
      shown,
      kept,
    },
  };
}

/** A warning that a page shows although the log does not have it: files differ from their digests. */
export function changeEvents(message: string | undefined): RunEvent[] {
  if (message === undefined) return [];
  return [{ type: 'warning', code: 'files.changed', message, time: new Date().toISOString(), version: 1 }];
}

/** The events, rounded to the digits of a chart. Only the last step keeps the words that explain inflation. */
function lean(events: readonly RunEvent[]): RunEvent[] {
  const last = events.findLastIndex(({ type }) => type === 'step');
  return events.map((event, i) => rounded(event, event.type === 'step' && i !== last) as RunEvent);
}

function rounded(value: unknown, wordless: boolean): unknown {
  if (typeof value === 'number') return Number(value.toPrecision(DIGITS));
  if (Array.isArray(value)) return value.map((inner) => rounded(inner, wordless));
  if (!isObject(value)) return value;
  const kept = Object.entries(value).filter(([key]) => !wordless || key !== 'explanation');
  return Object.fromEntries(kept.map(([key, inner]) => [key, rounded(inner, wordless)]));
}
