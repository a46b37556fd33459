/** Rows of a file of demonstrations, as `withDemonstrations` reads them. */
import { type FileHandle, open } from 'node:fs/promises';
import { basename, dirname, join } from 'node:path';
import { exactJson, messageOf, RunError, requireKnown } from '@drmas/engine/errors';
import { type Episode, type Message, successOf, type Tool, type Turn } from '@drmas/engine/nouns';
import { flushOpen, moveFile, nodeFiles, removeStale, TEMPORARY, temporaryName } from '@drmas/engine/platform';
import { readEpisodes } from '../../method/store.js';

/** A demonstration of one call: the conversation that the agent read, and its answer as the last message. */
export interface DemonstrationRow {
  readonly agent: string;
  readonly messages: readonly Message[];
  readonly tools?: readonly Tool[];
}

interface AnsweredRow extends DemonstrationRow {
  readonly answer: Message;
}

export const demonstrationRow = ({ agent, messages, tools, answer }: AnsweredRow): DemonstrationRow => ({
  agent,
  messages: [...messages, answer].map(({ turnId: _, ...message }) => message),
  ...(tools === undefined ? {} : { tools }),
});

/** The options of `recordDemonstrations`. */
export interface RecordOptions {
  /** Episodes with a lower success are left out. Default: all. */
  readonly minScore?: number;
  /** The agents to record. Default: all. */
  readonly agents?: readonly string[];
}

/** The parts of an episode that demonstrations are made of: of `playScripted`, or of an episode file of a run. */
export type RecordedEpisode = Pick<Episode, 'turns' | 'score' | 'failure'>;

/**
 * Writes the turns of episodes as demonstrations for the warm start, each with its system prompt, its tools and its
 * tool calls. Failed episodes and invalid turns are left out.
 * @param file A new file of JSON lines, for `withDemonstrations`
 * @param episodes Played episodes, or the path of an episode file such as `runs/first/episodes/step-000012.jsonl`
 * @returns The number of demonstrations
 * @throws RunError if the file exists or cannot be written, the episode file cannot be read, or no turn is left
 *
 * @example
 * ```ts
 * import { solverVerifier } from 'drmas';
 * import { recordDemonstrations } from 'drmas/tasks';
 * import { playScripted } from 'drmas/testing';
 *
 * const lines = { solver: ['\\boxed{2}'], verifier: ['<approve>'] };
 * const team = solverVerifier({ approve: '<approve>', reject: '<reject>' });
 * const episode = await playScripted(team, { question: '1+1', answer: '2' }, lines);
 * await recordDemonstrations('demonstrations.jsonl', [episode], { minScore: 1 });
 * ```
 */
export async function recordDemonstrations(
  file: string,
  episodes: readonly RecordedEpisode[] | string,
  options: RecordOptions = {},
): Promise<number> {
  requireKnown<RecordOptions>(options, { minScore: true, agents: true }, 'recordDemonstrations: unknown key');
  const { minScore = Number.NEGATIVE_INFINITY, agents } = options;
  if (await nodeFiles.exists(file)) throw new RunError(`${file} exists; demonstrations need a new file`);
  const all = typeof episodes === 'string' ? await episodesIn(episodes) : episodes;
  const kept = all.filter((episode) => reaches(episode, minScore));
  const rows = kept.flatMap((episode) => demonstrationsIn(episode, agents));
  if (rows.length === 0)
    throw new RunError(`no valid turn is left of ${all.length} episodes, ${kept.length} of them with the score`);
  const lines = await LineFile.create(file);
  try {
    for (const row of rows) await lines.add(row);
  } catch (error) {
    await LineFile.discard(lines);
    throw error;
  }
  await LineFile.keep(lines);
  return rows.length;
}

export const reaches = (episode: RecordedEpisode, minScore: number): boolean =>
  episode.failure === undefined && successOf(episode) >= minScore;

/** The valid turns of an episode, of these agents or of all, from which a warm start can learn: none is empty. */
export const demonstrationsIn = ({ turns }: RecordedEpisode, agents?: readonly string[]): DemonstrationRow[] =>
  turns.filter((turn) => turn.valid && (agents?.includes(turn.agent) ?? true) && !isEmpty(turn)).map(rowOfTurn);

const isEmpty = ({ text, content = text, toolCalls = [] }: Turn) => content === '' && toolCalls.length === 0;

async function episodesIn(path: string): Promise<readonly RecordedEpisode[]> {
  try {
    return (await readEpisodes(nodeFiles, path)) as readonly RecordedEpisode[];
  } catch (error) {
    throw error instanceof RunError ? error : new RunError(`${path} cannot be read: ${messageOf(error)}`);
  }
}

function rowOfTurn({ agent, messages, tools, text, content = text, toolCalls }: Turn): DemonstrationRow {
  const answer: Message = { role: 'assistant', content, ...(toolCalls === undefined ? {} : { toolCalls }) };
  return demonstrationRow({ agent, messages, answer, ...(tools === undefined ? {} : { tools }) });
}

/** The characters of lines that are written at once. */
const CHUNK = 1 << 17;

/**
 * A file of JSON lines, written some at a time: together they may be longer than the longest string. It gets its name
 * when it is whole, so a killed process leaves no half of a file.
 */
export class LineFile {
  readonly path: string;
  readonly #temporary: string;
  readonly #replaces: boolean;
  readonly #file: FileHandle;
  #lines: string[] = [];
  #length = 0;
  #isNamed = false;

  private constructor(path: string, temporary: string, replaces: boolean, file: FileHandle) {
    this.path = path;
    this.#temporary = temporary;
    this.#replaces = replaces;
    this.#file = file;
  }

  /**
   * @param options.replaces Whether the file takes the place of an older one
   * @throws RunError if the file exists or cannot be written
   */
  static async create(path: string, { replaces = false } = {}): Promise<LineFile> {
    const [folder, name] = [dirname(path), basename(path)];
    const temporary = join(folder, temporaryName(name));
    const file = await written(path, async () => {
      await nodeFiles.makeDirectory(folder);
      if (!replaces && (await nodeFiles.exists(path))) throw new Error('it exists');
      await removeStale(nodeFiles, folder, `${TEMPORARY}${name}-`);
      return open(temporary, 'wx');
    });
    return new LineFile(path, temporary, replaces, file);
  }

  /**
   * Writes the rest of files, and gives them their names when all are whole.
   * @throws RunError. Then none is left
   */
  static async keep(...files: readonly LineFile[]): Promise<void> {
    try {
      for (const file of files) await written(file.path, () => file.#finish());
      for (const file of files) await written(file.path, () => file.#name());
    } catch (error) {
      await LineFile.discard(...files);
      throw error;
    }
  }

  /** Removes files, whole or not. */
  static async discard(...files: readonly LineFile[]): Promise<void> {
    for (const file of files) {
      await file.#file.close().catch(() => {}); // it may be closed
      await nodeFiles.remove(file.#temporary);
      if (file.#isNamed && !file.#replaces) await nodeFiles.remove(file.path);
    }
  }

  /** @throws RunError */
  async add(row: object): Promise<void> {
    const line = `${exactJson(row)}\n`;
    this.#lines.push(line);
    this.#length += line.length;
    if (this.#length >= CHUNK) await written(this.path, () => this.#write());
  }

  async #finish(): Promise<void> {
    await this.#write();
    await flushOpen(this.#file);
    await this.#file.close();
  }

  async #name(): Promise<void> {
    if (!this.#replaces && (await nodeFiles.exists(this.path))) throw new Error('it exists');
    this.#isNamed = true; // the rename may succeed, and the disk be full afterwards
    if (this.#replaces) await moveFile(this.#temporary, this.path);
    else await nodeFiles.rename(this.#temporary, this.path);
  }

  async #write(): Promise<void> {
    await this.#file.writeFile(this.#lines.join(''));
    [this.#lines, this.#length] = [[], 0];
  }
}

async function written<T>(path: string, write: () => Promise<T>): Promise<T> {
  try {
    return await write();
  } catch (error) {
    throw cannotWrite(path, error);
  }
}

export const cannotWrite = (path: string, error: unknown): RunError =>
  new RunError(`${path} cannot be written: ${messageOf(error)}`);
