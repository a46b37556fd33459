import type { RunEvent, Spike } from '../core/events.js';
import { isObject } from '../core/validation/objects.js';
import { RunDirectory } from '../store/run-directory.js';
import type { RunRecord } from '../store/run-record.js';
import type { EmbeddedRun } from './analysis/embedded.js';
import type { TextPool } from './analysis/packed-texts.js';
import { RunFactsReader } from './analysis/run-facts.js';
import { sampleEpisodes } from './episode-sample.js';
import type { FoundRun } from './find-runs.js';

/** Significant digits of the numbers in a report: no chart shows more. */
const DIGITS = 6;

/** A run as a report carries it, with its record. */
export interface ReportedRun {
  readonly record: RunRecord;
  readonly embedded: EmbeddedRun;
}

/**
 * Reads all that a report shows of a run; nothing that does not lie in its directory.
 * @throws RunError when there is no run or its log is damaged; LogError naming the line of a damaged episode file
 */
export async function readRun(
  { path, name, ablation = null }: Pick<FoundRun, 'path' | 'name'> & { readonly ablation?: string | undefined | null },
  episodeBytes: number,
  pool: TextPool,
): Promise<ReportedRun> {
  const run = await RunDirectory.open(path);
  const events = await run.events();
  const reader = new RunFactsReader(run.record.resolved);
  for (const event of events) reader.add(event);
  const { facts } = reader;
  const spikes = events.filter((event): event is Spike & RunEvent => /^(spike|skipped)$/.test(event.type));
  const { files, shown, kept } = await sampleEpisodes(path, spikes, episodeBytes, pool);
  const state = facts.state === 'unfinished' ? 'interrupted' : facts.state;
  return {
    record: run.record,
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

/** The events with no more digits than a chart shows; the words that explain inflation stay in the last step alone. */
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
