import { createHash } from 'node:crypto';
import { type Episode, type Failure, type LogEntry, type Score, type Turn, turnReward } from '../core/episode.js';
import { messageOf, RunError } from '../core/errors.js';
import type { Files } from '../core/files.js';
import { isObject } from '../core/validation/objects.js';
import { linesOf } from './files/chained-file.js';
import { type FileDigest, jsonOf } from './files/digests.js';

const utf8 = new TextEncoder();

/** A turn on disk, complete enough to grade it again or to train on it again. */
export interface StoredTurn extends Omit<Turn, 'value'> {
  readonly value?: unknown;
  /** The turn's reward: the episode's reward for this agent plus that of this turn alone, minus the penalty. */
  readonly reward: number;
  /** The advantage: one number for all tokens or one a token; absent in evaluations. */
  readonly advantage?: number | readonly number[];
  /** What the update made of its tokens; absent in evaluations, and of a turn that no update used. */
  readonly ratio?: UpdatedTokens['ratio'];
  readonly clipped?: UpdatedTokens['clipped'];
}

/** What the last update that used a turn made of its tokens. */
export interface UpdatedTokens {
  /** The importance ratio, to five digits: one number for all tokens or one a token. */
  readonly ratio: number | readonly number[];
  /** The positions of the tokens whose clipped side counted; absent where there are none. */
  readonly clipped?: readonly number[];
}

/** One line of an episode file. */
export interface StoredEpisode {
  readonly task: { readonly id: string; readonly data: unknown };
  readonly sample: number;
  readonly score: Score;
  readonly outcome?: unknown;
  readonly failure?: Failure;
  readonly log?: readonly LogEntry[];
  readonly refused?: Readonly<Record<string, number>>;
  readonly turns: readonly StoredTurn[];
}

/** The advantages of an episode, one entry a turn; undefined for turns that no policy learns from. */
export type Advantages = readonly (number | readonly number[] | undefined)[];

/** The stored form of an episode. */
export function storedEpisode(
  episode: Episode,
  advantages?: Advantages,
  tokens?: ReadonlyMap<Turn, UpdatedTokens>,
): StoredEpisode {
  const { task, sample, score, outcome, failure, log, refused } = episode;
  const turns = episode.turns.map((turn, index): StoredTurn => {
    const advantage = advantages?.[index];
    const estimated = advantage === undefined ? {} : { advantage };
    return { ...turn, reward: turnReward(episode, turn), ...estimated, ...tokens?.get(turn) };
  });
  const more = { ...(failure ? { failure } : {}), ...(log ? { log } : {}), ...(refused ? { refused } : {}) };
  return { task: { id: task.id, data: task.data }, sample, score, outcome, ...more, turns };
}

/** Writes one JSON line an episode, one after another: a file may be larger than the longest text. */
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

function lineOf(episode: StoredEpisode): string | undefined {
  try {
    return JSON.stringify(withValues(episode, plain));
  } catch {
    // One of the team's values cannot be read, because a getter or a `toJSON` throws, or JSON lacks what stands where
    // no value of the team is expected. The rest is kept.
    try {
      return stringify(withValues(episode, readable));
    } catch {
      return stringify(withValues(episode, () => '[left out: the episode is longer than the longest text]'));
    }
  }
}

/** The episode with what the team's own values become. The others are numbers and texts, nearly all of them. */
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

/** What JSON keeps of a value, with texts for what it lacks. */
function plain(value: unknown): unknown {
  const text = typeof value === 'string' ? undefined : stringify(value);
  return text === undefined ? value : JSON.parse(text);
}

/** The JSON of a value that a team returned; for a value that cannot be read, a text with the reason. */
export function jsonText(value: unknown): string | undefined {
  return stringify(readable(value));
}

function readable(value: unknown): unknown {
  try {
    stringify(value);
    return value;
  } catch (error) {
    return `[cannot be written as JSON: ${messageOf(error)}]`;
  }
}

/** Writes a value as JSON. Big integers, functions, symbols and circular references, which JSON lacks, become text. */
function stringify(value: unknown): string | undefined {
  const ancestors: unknown[] = [];
  return JSON.stringify(value, function (this: unknown, _key, inner: unknown) {
    if (typeof inner === 'bigint' || typeof inner === 'function' || typeof inner === 'symbol') return String(inner);
    if (typeof inner !== 'object' || inner === null) return inner;
    while (ancestors.length > 0 && ancestors.at(-1) !== this) ancestors.pop();
    if (ancestors.includes(inner)) return '[circular]';
    ancestors.push(inner);
    return inner;
  });
}

/**
 * Reads a file of `writeEpisodes`, or its first episodes; a torn last line is left out.
 * @throws RunError naming file and line
 */
export async function readEpisodes(
  files: Files,
  path: string,
  most = Number.POSITIVE_INFINITY,
): Promise<StoredEpisode[]> {
  const episodes: StoredEpisode[] = [];
  for await (const line of linesOf(files, path)) {
    if (episodes.length === most) break;
    const episode = jsonOf(line);
    if (!isObject(episode))
      throw new RunError(`${path}:${episodes.length + 1}: expected an episode as one JSON object`);
    episodes.push(episode as unknown as StoredEpisode);
  }
  return episodes;
}
