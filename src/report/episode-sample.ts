import { stat } from 'node:fs/promises';
import { join } from 'node:path';
import { responseTokens } from '../core/episode.js';
import type { Spike } from '../core/events.js';
import { mean } from '../core/statistics.js';
import { nodeFiles } from '../platform/node-files.js';
import type { StoredEpisode } from '../store/episode-files.js';
import { fieldAt, numberAt, type Place, type Row, readRows, rowsAt } from '../store/log-rows.js';

/**
 * A turn as the page shows it. Texts are positions in the sample's `texts`, so that what siblings share is there once.
 */
export interface ShownTurn {
  readonly agent: string;
  readonly prompt: number;
  readonly text: number;
  readonly tokens: number;
  readonly valid: boolean;
  readonly penalty: number;
  /** The reward that the team gave this turn besides the episode's. */
  readonly stepReward: number;
  readonly reward: number;
  /** Mean over the tokens where the estimator gives one a token; null in evaluations. */
  readonly advantage: number | null;
}

export interface ShownEpisode {
  readonly sample: number;
  readonly reward: number;
  readonly failure: string | null;
  readonly turns: readonly ShownTurn[];
}

/** The episodes of one task in one file. */
export interface ShownGroup {
  readonly task: string;
  readonly data: number;
  readonly episodes: readonly ShownEpisode[];
}

export interface ShownFile {
  /** `step 12`, `evaluation 60`. */
  readonly name: string;
  readonly groups: readonly ShownGroup[];
}

/** The episodes of a run that a page holds. */
export interface EpisodeSample {
  readonly files: readonly ShownFile[];
  readonly texts: readonly string[];
  readonly shown: number;
  /** Episodes on disk. */
  readonly kept: number;
}

/** A longer text is cut: the episode file holds all of it. */
const LONGEST_TEXT = 6000;

/**
 * Every kept episode where they fit into `bytes`; otherwise whole groups, the room shared evenly among the files (what
 * small ones leave goes to larger ones) and spread over each file's tasks, those behind a spike first, at least one
 * group a file.
 * @throws LogError naming file and line of what is not an episode
 */
export async function sampleEpisodes(run: string, spikes: readonly Spike[], bytes: number): Promise<EpisodeSample> {
  const directory = join(run, 'episodes');
  const names = (await nodeFiles.list(directory)).filter((name) => name.endsWith('.jsonl'));
  const available = await Promise.all(
    names.map(async (name) => ({
      ...described(name),
      file: join(directory, name),
      size: (await stat(join(directory, name))).size,
    })),
  );
  const texts = new Texts();
  const files: (ShownFile & Described)[] = [];
  let kept = 0;
  for (const [index, { file, ...about }] of available.sort((a, b) => a.size - b.size).entries()) {
    const groups = await readGroups(file);
    const blamed = about.kind === 'step' ? spikes.filter(({ step }) => step === about.number) : [];
    const limit = texts.bytes + (bytes - texts.bytes) / (available.length - index);
    const chosen = new Map<number, ShownGroup>();
    for (const position of inOrderOfInterest(groups, blamed)) {
      const group = groups[position];
      if (group === undefined || (chosen.size > 0 && texts.bytes >= limit)) break;
      chosen.set(position, shownGroup(group, texts));
    }
    kept += countOf(groups);
    files.push({ ...about, groups: [...chosen].sort(([a], [b]) => a - b).map(([, group]) => group) });
  }
  // In the order of the run: the evaluation after a step follows it.
  files.sort((a, b) => a.number - b.number || (a.kind < b.kind ? 1 : -1));
  return {
    files: files.map(({ name, groups }) => ({ name, groups })),
    texts: texts.all,
    shown: files.reduce((sum, { groups }) => sum + countOf(groups), 0),
    kept,
  };
}

const countOf = (groups: readonly { readonly episodes: readonly unknown[] }[]): number =>
  groups.reduce((sum, { episodes }) => sum + episodes.length, 0);

interface Described {
  readonly name: string;
  readonly kind: string;
  /** The step; evaluations outside of the run's course come last. */
  readonly number: number;
}

function described(file: string): Described {
  const [, kind, number] = /^(step|evaluation)-(\d+)\.jsonl$/.exec(file) ?? [];
  if (kind === undefined) return { name: file.replace(/\.jsonl$/, ''), kind: '', number: Number.MAX_SAFE_INTEGER };
  return { name: `${kind} ${Number(number)}`, kind, number: Number(number) };
}

interface Group {
  readonly task: string;
  readonly episodes: StoredEpisode[];
}

async function readGroups(file: string): Promise<Group[]> {
  const groups = new Map<string, Group>();
  await readRows(file, (row, place) => {
    const episode = checked(row, place);
    const group = groups.get(episode.task.id);
    if (group === undefined) groups.set(episode.task.id, { task: episode.task.id, episodes: [episode] });
    else group.episodes.push(episode);
  });
  return [...groups.values()];
}

/** An episode with the fields that a page cannot do without. */
function checked(row: Row, place: Place): StoredEpisode {
  numberAt(row, 'score.team', place);
  for (const turn of rowsAt(row, 'turns', place)) numberAt(turn, 'reward', place);
  return {
    ...row,
    task: { data: undefined, ...(row.task as object), id: String(fieldAt(row, 'task.id')) },
  } as unknown as StoredEpisode;
}

/**
 * Positions of the groups: those behind a spike first, then spread evenly, however many fit (a golden-ratio sequence).
 */
function inOrderOfInterest(groups: readonly Group[], spikes: readonly Spike[]): number[] {
  const blamed = new Set(spikes.flatMap(({ episodes }) => episodes.map((name) => name.replace(/\/[^/]*$/, ''))));
  const rank = (position: number) =>
    blamed.has(groups[position]?.task ?? '') ? -1 : (position * 0.6180339887498949) % 1;
  return groups.map((_, position) => position).sort((a, b) => rank(a) - rank(b));
}

function shownGroup({ task, episodes }: Group, texts: Texts): ShownGroup {
  const data = episodes[0]?.task.data;
  return {
    task,
    data: texts.add(describe(data)),
    episodes: episodes.map(({ sample, score, failure, turns }) => ({
      sample,
      reward: score.team,
      failure: failure === undefined ? null : `${failure.reason}: ${failure.message}`,
      turns: turns.map((turn) => ({
        agent: turn.agent,
        prompt: texts.add((turn.messages ?? []).map(({ role, content }) => `[${role}]\n${content}`).join('\n\n')),
        text: texts.add(turn.text ?? ''),
        tokens: responseTokens({ ...turn, response: turn.response ?? [] }),
        valid: turn.valid,
        penalty: turn.penalty,
        stepReward: turn.stepReward ?? 0,
        reward: turn.reward,
        advantage: shownAdvantage(turn.advantage),
      })),
    })),
  };
}

function shownAdvantage(advantage: number | readonly number[] | undefined): number | null {
  if (advantage === undefined) return null;
  return Number((typeof advantage === 'number' ? advantage : mean(advantage)).toPrecision(6));
}

/** A task in words: its question and answer where it has them. */
function describe(data: unknown): string {
  if (typeof data === 'string') return data;
  if (typeof data !== 'object' || data === null) return '';
  return Object.entries(data)
    .map(([name, value]) => `${name}: ${typeof value === 'string' ? value : JSON.stringify(value)}`)
    .join('\n');
}

/** The bytes that a turn takes in the page beside its texts, about. */
const TURN_BYTES = 120;

/** Texts, each once. */
class Texts {
  readonly all: string[] = [];
  readonly #positions = new Map<string, number>();
  /** The bytes that the page will take for texts and turns so far, about. */
  bytes = 0;

  add(text: string): number {
    this.bytes += TURN_BYTES / 2;
    const cut =
      text.length <= LONGEST_TEXT
        ? text
        : `${text.slice(0, LONGEST_TEXT)}\n… (${text.length - LONGEST_TEXT} more characters in the episode file)`;
    const earlier = this.#positions.get(cut);
    if (earlier !== undefined) return earlier;
    this.#positions.set(cut, this.all.length);
    this.bytes += cut.length;
    return this.all.push(cut) - 1;
  }
}
