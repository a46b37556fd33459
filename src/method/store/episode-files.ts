import { createHash } from 'node:crypto';
import { join } from 'node:path';
import { damageOf, type FileDigest, jsonOf, linesOf } from '@drmas/engine/disk';
import { exactJson, nestsTooDeep, parseWithSources, RunError } from '@drmas/engine/errors';
import type { Files } from '@drmas/engine/host';
import { type Episode, readable, stringify, type Turn, turnReward } from '@drmas/engine/nouns';
import { temporaryName } from '@drmas/engine/platform';
import { z } from 'zod';
import { DIGESTS, freePath, timeStamp } from './run-path.js';
import { episodeFault } from './stored-shapes.js';

/** A line of digests.jsonl. */
const lineSchema = z.object({
  /** The path in the run's directory. */
  file: z.string().regex(/^(?:events|episodes\/[\w.-]+)\.jsonl$/),
  bytes: z.int().min(0),
  sha256: z.string(),
  /** Only for the event log. */
  lines: z.int().min(0).optional(),
});

export type DigestLine = z.output<typeof lineSchema>;

/** Reads the first lines of digests.jsonl, all of them by default. @throws RunError with file and line */
export async function readDigests(files: Files, run: string, most = Number.POSITIVE_INFINITY): Promise<DigestLine[]> {
  const path = join(run, DIGESTS);
  const digests: DigestLine[] = [];
  if (most === 0 || !(await files.exists(path))) return digests;
  for await (const line of linesOf(files, path)) {
    const { data } = lineSchema.safeParse(jsonOf(line));
    if (data === undefined) throw new RunError(`${path}:${digests.length + 1}: expected the digest of a file`);
    digests.push(data);
    if (digests.length === most) break;
  }
  return digests;
}

/** The episode files in the first lines of digests.jsonl whose content has changed. */
export async function damagedEpisodes(
  files: Files,
  run: string,
  lines: number,
): Promise<{ readonly file: string; readonly why: string }[]> {
  const damaged: { file: string; why: string }[] = [];
  for (const { file, ...digest } of await readDigests(files, run, lines)) {
    const why = digest.lines === undefined ? await damageOf(files, join(run, file), digest) : undefined;
    if (why !== undefined) damaged.push({ file, why });
  }
  return damaged;
}

const utf8 = new TextEncoder();

/** A turn on disk. It is complete: a program can grade it again or train on it again. */
export interface StoredTurn extends Omit<Turn, 'value'> {
  readonly value?: unknown;
  /** The turn's reward: the episode's reward for this agent, plus the turn's own reward, minus its penalty. */
  readonly reward: number;
  /** The advantage: one number for all tokens or one a token; absent in evaluations. */
  readonly advantage?: number | readonly number[];
  /** The effect of the update on its tokens. Absent in evaluations, and for a turn that no update used. */
  readonly ratio?: UpdatedTokens['ratio'];
  readonly clipped?: UpdatedTokens['clipped'];
}

export interface UpdatedTokens {
  /** The importance ratio, to five digits: one number for all tokens or one a token. */
  readonly ratio: number | readonly number[];
  /** The positions of the tokens for which the loss used the clipped term. Absent if there are none. */
  readonly clipped?: readonly number[];
}

/** One line of an episode file. */
export interface StoredEpisode
  extends Pick<Episode, 'sample' | 'score' | 'failure' | 'log' | 'refused' | 'unanswered'> {
  readonly task: { readonly id: string; readonly data: unknown };
  readonly outcome?: unknown;
  readonly turns: readonly StoredTurn[];
}

/** The advantages of an episode, one entry a turn. Undefined for turns that no policy learns from. */
export type EpisodeAdvantages = readonly (number | readonly number[] | undefined)[];

export function storedEpisode(
  episode: Episode,
  advantages?: EpisodeAdvantages,
  tokens?: ReadonlyMap<Turn, UpdatedTokens>,
): StoredEpisode {
  const { task, sample, score, outcome, failure, log, refused, unanswered } = episode;
  const turns = episode.turns.map((turn, index): StoredTurn => {
    const advantage = advantages?.[index];
    const estimated = advantage === undefined ? {} : { advantage };
    return { ...turn, reward: turnReward(episode, turn), ...estimated, ...tokens?.get(turn) };
  });
  const more = {
    ...(failure ? { failure } : {}),
    ...(log ? { log } : {}),
    ...(refused ? { refused } : {}),
    ...(unanswered ? { unanswered } : {}),
  };
  return { task: { id: task.id, data: task.data }, sample, score, outcome, ...more, turns };
}

/** Writes one JSON line an episode, one after another, because a file may be larger than the longest string. */
export async function writeEpisodes(
  files: Files,
  path: string,
  episodes: readonly StoredEpisode[],
): Promise<FileDigest> {
  const hash = createHash('sha256');
  let bytes = 0;
  function* lines(): Generator<Uint8Array> {
    for (const episode of episodes) {
      const line = utf8.encode(`${lineOf(episode)}\n`);
      hash.update(line);
      bytes += line.length;
      yield line;
    }
  }
  await files.write(path, lines());
  return { bytes, sha256: hash.digest('hex') };
}

/** Writes episodes to a new file, named after the time, which appears at once. Returns its path. */
export async function writeNewEpisodes(
  files: Files,
  directory: string,
  episodes: readonly Episode[],
  now: Date,
): Promise<string> {
  const temporary = join(directory, temporaryName('evaluate'));
  try {
    await writeEpisodes(
      files,
      temporary,
      episodes.map((episode) => storedEpisode(episode)),
    );
    const path = await freePath(files, join(directory, `evaluate-${timeStamp(now)}`), '.jsonl');
    await files.rename(temporary, path);
    return path;
  } catch (error) {
    await files.remove(temporary);
    throw error;
  }
}

export async function removeEpisodesAfter(files: Files, directory: string, step: number): Promise<void> {
  for (const name of await files.list(directory)) {
    const number = /^(?:step|evaluation)-(\d+)\.jsonl$/.exec(name)?.[1];
    if (number !== undefined && Number(number) > step) await files.remove(join(directory, name));
  }
}

function lineOf(episode: StoredEpisode): string | undefined {
  try {
    return exactJson(withValues(episode, plain));
  } catch {
    // One of the team's values cannot be read because a getter or a `toJSON` throws, or a field that is not the team's
    // has a value that JSON lacks. The rest is kept.
    try {
      return stringify(withValues(episode, readable));
    } catch {
      return stringify(withValues(episode, () => '[left out: the episode is longer than the longest text]'));
    }
  }
}

/** The episode with the team's own values converted. All other values are numbers and texts. */
function withValues(episode: StoredEpisode, value: (value: unknown) => unknown): StoredEpisode {
  const { task, outcome, turns, log } = episode;
  return {
    ...episode,
    task: { ...task, data: value(task.data) },
    outcome: value(outcome),
    ...(log === undefined ? {} : { log: log.map((entry) => ({ name: entry.name, value: value(entry.value) })) }),
    turns: turns.map((turn) => (turn.value === undefined ? turn : { ...turn, value: value(turn.value) })),
  };
}

/** The JSON form of a value. Values that JSON lacks become texts. */
function plain(value: unknown): unknown {
  const text = typeof value === 'string' ? undefined : stringify(value);
  return text === undefined ? value : JSON.parse(text);
}

/** The value of a line, whose schemas of tools keep their digits; undefined if it is no JSON. */
function readLine(line: string): unknown {
  if (nestsTooDeep(line)) return undefined;
  try {
    return parseWithSources(line, SCHEMAS);
  } catch {
    return undefined;
  }
}
const SCHEMAS = new Set(['parameters']);

/** An episode with the tables and lists that early versions did not write. */
function completed(row: StoredEpisode): StoredEpisode {
  const { score, turns } = row;
  return {
    ...row,
    score: { ...score, parts: score.parts ?? {}, agents: score.agents ?? {} },
    turns: turns.map((turn) => ('messages' in turn ? turn : { ...(turn as StoredTurn), messages: [] })),
  };
}

/**
 * Reads a file of `writeEpisodes`, or its first episodes. An incomplete last line is omitted.
 * @throws RunError with file and line
 */
export async function readEpisodes(
  files: Files,
  path: string,
  most = Number.POSITIVE_INFINITY,
): Promise<StoredEpisode[]> {
  const episodes: StoredEpisode[] = [];
  for await (const line of linesOf(files, path)) {
    if (episodes.length === most) break;
    const row = readLine(line);
    const fault = episodeFault(row);
    if (fault !== undefined) throw new RunError(`${path}:${episodes.length + 1}: ${fault}`);
    episodes.push(completed(row as StoredEpisode));
  }
  return episodes;
}
