import { createReadStream } from 'node:fs';
import { open, stat } from 'node:fs/promises';
import { UnfinishedLine } from '@drmas/engine/disk';
import { isObject, LogError } from '@drmas/engine/errors';
import type { StoredEpisode } from '../../../method/store.js';
import { type EpisodeFacts, type FactsGroup, taskTitle } from '../../../runs/analysis.js';
import { checkedEpisode } from '../../report/shown-episodes.js';

export interface IndexedEpisode extends EpisodeFacts {
  readonly at: number;
  readonly bytes: number;
  /** The number of its line, for error messages. */
  readonly line: number;
}

type IndexedGroup = FactsGroup<IndexedEpisode>;

/** The positions of the episodes of a file, group by group. */
export interface EpisodeIndex {
  readonly groups: readonly IndexedGroup[];
  readonly byTask: ReadonlyMap<string, IndexedGroup>;
  readonly agents: readonly string[];
  readonly episodes: number;
}

const NEWLINE = 10;
const PIECE = 1 << 20;
/** The most indexes in memory. An episode takes about 200 bytes of an index. */
const MOST_INDEXES = 6;

/** The indexes of the files that were read last. A changed file is read again. */
export class EpisodeIndexes {
  readonly #indexes = new Map<string, { readonly version: string; readonly index: Promise<EpisodeIndex> }>();

  /** @throws LogError with the line that is not an episode */
  async of(file: string): Promise<EpisodeIndex> {
    const status = await stat(file);
    const { size, mtimeMs } = status;
    if (!status.isFile()) throw new LogError('it is not a regular file', { file });
    const version = `${size} ${mtimeMs}`;
    const known = this.#indexes.get(file);
    this.#indexes.delete(file); // and inserted again as the latest
    const entry = known?.version === version ? known : { version, index: indexOf(file) };
    this.#indexes.set(file, entry);
    for (const name of [...this.#indexes.keys()].slice(0, -MOST_INDEXES)) this.#indexes.delete(name);
    return entry.index.catch((error: unknown) => {
      this.#indexes.delete(file);
      throw error;
    });
  }
}

async function indexOf(file: string): Promise<EpisodeIndex> {
  const groups = new Map<string, { task: string; title: string; episodes: IndexedEpisode[] }>();
  const names = new Map<string, string>(); // one string per agent instead of one per episode
  const nameOf = (agent: string) => names.get(agent) ?? names.set(agent, agent).get(agent) ?? agent;
  let episodes = 0;
  for await (const { text, at, bytes, line } of linesOf(file)) {
    const { task, sample, score, failure, turns } = parseEpisode(text, file, line);
    const entry: IndexedEpisode = {
      at,
      bytes,
      line,
      sample,
      reward: score.team,
      failed: failure !== undefined,
      agents: [...new Set(turns.map(({ agent }) => nameOf(agent)))],
      invalid: [...new Set(turns.filter(({ valid }) => !valid).map(({ agent }) => nameOf(agent)))],
    };
    const group = groups.get(task.id) ?? { task: task.id, title: taskTitle(task), episodes: [] };
    groups.set(task.id, group);
    group.episodes.push(entry);
    episodes++;
  }
  return { groups: [...groups.values()], byTask: groups, agents: [...names.keys()].sort(), episodes };
}

export async function readIndexed(file: string, entries: readonly IndexedEpisode[]): Promise<StoredEpisode[]> {
  const handle = await open(file, 'r');
  try {
    const episodes: StoredEpisode[] = [];
    for (const { at, bytes, line } of entries) {
      const { buffer } = await handle.read(Buffer.alloc(bytes), 0, bytes, at);
      episodes.push(parseEpisode(buffer.toString('utf8'), file, line));
    }
    return episodes;
  } finally {
    await handle.close();
  }
}

function parseEpisode(text: string, file: string, line: number): StoredEpisode {
  let row: unknown;
  try {
    row = JSON.parse(text);
  } catch {
    // reported below, like other lines without an episode
  }
  if (!isObject(row)) throw new LogError('expected an episode as one JSON object', { file, line });
  return checkedEpisode(row, { file, line });
}

interface PlacedLine {
  readonly text: string;
  readonly at: number;
  readonly bytes: number;
  readonly line: number;
}

/** The complete lines of a file, each with its position. A text after the last line feed is still being written. */
async function* linesOf(file: string): AsyncGenerator<PlacedLine> {
  const unfinished = new UnfinishedLine();
  const tooLong = (problem: string) => new LogError(problem, { file, line: line + 1 });
  let at = 0;
  let line = 0;
  for await (const piece of createReadStream(file, { highWaterMark: PIECE }) as AsyncIterable<Buffer>) {
    let start = 0;
    for (let end = piece.indexOf(NEWLINE); end >= 0; end = piece.indexOf(NEWLINE, start)) {
      unfinished.push(piece.subarray(start, end), tooLong);
      const whole = unfinished.take();
      line++;
      if (whole.length > 0) yield { text: whole.toString('utf8'), at, bytes: whole.length, line };
      at += whole.length + 1;
      start = end + 1;
    }
    if (start < piece.length) unfinished.push(piece.subarray(start), tooLong);
  }
}
