import { createReadStream } from 'node:fs';
import { join } from 'node:path';
import { isObject } from '@drmas/engine/errors';
import type { RunEvent, Spike } from '@drmas/engine/events';
import { nodeFiles } from '@drmas/engine/platform';
import {
  changedRecords,
  EPISODES,
  RunDirectory,
  type RunRecord,
  readRows,
  type StoredEpisode,
} from '../../method/store.js';
import { type EmbeddedRun, RunFactsReader, type TextPool } from '../../runs/analysis.js';
import { type FoundRun, runState } from './find-runs.js';
import { checkedEpisode, shownGroup } from './shown-episodes.js';

/** Significant digits of the numbers in a report. Charts show no more. */
const DIGITS = 6;

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
  const state = await runState(path, facts);
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

interface SampledFile {
  /** `step-000012`, `evaluation-000060`. */
  readonly name: string;
  readonly size: number;
  /** Each group, packed with the pool of the page's texts, as a page reads it. */
  readonly groups: readonly string[];
}

interface EpisodeSample {
  readonly files: readonly SampledFile[];
  readonly shown: number;
  /** Episodes on disk. */
  readonly kept: number;
}

/**
 * All kept episodes if they fit into `bytes`; otherwise whole groups. The files share the bytes evenly, and bytes that
 * small files do not need go to larger ones. The groups of a file are spread over its tasks, and groups behind a spike
 * come first. If there are not enough bytes for a group of every file, as many files as fit give one group each: first
 * files with a spike, then the last, the first, then evenly spread ones.
 * @param pool Receives the texts; texts that it already has need no more bytes
 * @throws LogError with file and line if a line is not an episode
 */
export async function sampleEpisodes(
  run: string,
  spikes: readonly Spike[],
  bytes: number,
  pool: TextPool,
): Promise<EpisodeSample> {
  const available = await episodeFiles(run, spikes);
  const byRank = available.toSorted((a, b) => a.rank - b.rank);
  const scarce = byRank[0] !== undefined && bytes / available.length < (await bytesOfGroup(byRank[0]));
  const order = scarce ? byRank : available.toSorted((a, b) => a.size - b.size);
  const end = pool.bytes + bytes;
  const files: SampledFile[] = [];
  let [shown, kept] = [0, 0];
  for (const [i, file] of order.entries()) {
    if (scarce && i > 0 && pool.bytes >= end) break;
    const limit = scarce ? 0 : pool.bytes + (end - pool.bytes) / (order.length - i);
    const { episodes, ...sampled } = await sampleFile(file, limit, pool);
    files.push(sampled);
    shown += episodes;
  }
  for (const { path } of available) kept += await linesIn(path);
  return { files: files.sort((a, b) => (a.name < b.name ? -1 : 1)), shown, kept };
}

/** Whole groups of a file until the pool has `limit` bytes, at least one, with the number of their episodes. */
async function sampleFile(
  { path, name, size, spikes }: AvailableFile,
  limit: number,
  pool: TextPool,
): Promise<SampledFile & { readonly episodes: number }> {
  const groups = await readGroups(path);
  const chosen = new Map<number, string>();
  let episodes = 0;
  for (const position of inOrderOfInterest(groups, spikes)) {
    const group = groups[position];
    if (group === undefined || (chosen.size > 0 && pool.bytes >= limit)) break;
    chosen.set(position, pool.pack(shownGroup(group.task, group.episodes)));
    episodes += group.episodes.length;
  }
  const inOrder = [...chosen].sort(([a], [b]) => a - b).map(([, group]) => group);
  return { name: name.replace(/\.jsonl$/, ''), size, groups: inOrder, episodes };
}

/** The bytes of a group on disk, on average. */
const bytesOfGroup = async ({ path, size }: AvailableFile) => size / Math.max(1, (await readGroups(path)).length);

interface AvailableFile {
  readonly name: string;
  readonly path: string;
  readonly size: number;
  /** The spikes of the step whose episodes it holds. */
  readonly spikes: readonly Spike[];
  /** The smaller, the more there is to see in it. */
  readonly rank: number;
}

async function episodeFiles(run: string, spikes: readonly Spike[]): Promise<AvailableFile[]> {
  const directory = join(run, EPISODES);
  const names = (await nodeFiles.list(directory)).filter((name) => name.endsWith('.jsonl'));
  return Promise.all(
    names.map(async (name, i) => {
      const path = join(directory, name);
      const step = Number(/^step-(\d+)/.exec(name)?.[1] ?? Number.NaN);
      const blamed = spikes.filter((spike) => spike.step === step);
      const rank = blamed.length > 0 ? -3 : i === names.length - 1 ? -2 : i === 0 ? -1 : spread(i);
      return { name, path, size: await nodeFiles.size(path), spikes: blamed, rank };
    }),
  );
}

/** The number of lines of a file, counted without reading them. */
async function linesIn(path: string): Promise<number> {
  let lines = 0;
  for await (const piece of createReadStream(path) as AsyncIterable<Buffer>)
    for (let at = piece.indexOf(10); at >= 0; at = piece.indexOf(10, at + 1)) lines++;
  return lines;
}

interface TaskEpisodes {
  readonly task: string;
  readonly episodes: StoredEpisode[];
}

async function readGroups(file: string): Promise<TaskEpisodes[]> {
  const groups = new Map<string, TaskEpisodes>();
  await readRows(file, (row, place) => {
    const episode = checkedEpisode(row, place);
    const group = groups.get(episode.task.id);
    if (group === undefined) groups.set(episode.task.id, { task: episode.task.id, episodes: [episode] });
    else group.episodes.push(episode);
  });
  return [...groups.values()];
}

/** Positions of the groups: those behind a spike first, then spread evenly, however many fit. */
function inOrderOfInterest(groups: readonly TaskEpisodes[], spikes: readonly Spike[]): number[] {
  const blamed = new Set(spikes.flatMap(({ episodes }) => episodes.map((name) => name.replace(/\/[^/]*$/, ''))));
  const rank = (position: number) => (blamed.has(groups[position]?.task ?? '') ? -1 : spread(position));
  return groups.map((_, position) => position).sort((a, b) => rank(a) - rank(b));
}

/** Numbers in [0, 1) whose order spreads positions evenly, however many are taken (a golden-ratio sequence). */
const spread = (position: number) => (position * 0.6180339887498949) % 1;
