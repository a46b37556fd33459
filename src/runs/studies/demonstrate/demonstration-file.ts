/** The file of demonstrations that grows while a team plays. */
import { open } from 'node:fs/promises';
import { dirname } from 'node:path';
import { exactJson } from '@drmas/engine/errors';
import type { Episode } from '@drmas/engine/nouns';
import { nodeFiles } from '@drmas/engine/platform';
import { cannotWrite, demonstrationsIn, reaches } from '../../traces/demonstration-rows.js';

interface Wanted {
  readonly out: string;
  readonly agents: readonly string[];
  readonly minScore: number;
}

/**
 * Demonstrations in the order of their tasks. A task's demonstrations are written as soon as all earlier tasks are
 * done: answers may be paid for, and a process that is killed leaves them under the file's name, in whole lines.
 */
export class DemonstrationFile {
  readonly agents: Record<string, number>;
  demonstrations = 0;
  /** Episodes whose demonstrations are in the file. */
  kept = 0;
  readonly #wanted: Wanted;
  /** Episodes of tasks that wait for an earlier one. */
  readonly #waiting = new Map<number, readonly Episode[]>();
  #next = 0;
  #bytes = 0;

  private constructor(wanted: Wanted) {
    this.#wanted = wanted;
    this.agents = Object.fromEntries(wanted.agents.map((agent) => [agent, 0]));
  }

  /** @throws RunError if the file exists or cannot be written */
  static async create(wanted: Wanted): Promise<DemonstrationFile> {
    try {
      await nodeFiles.makeDirectory(dirname(wanted.out));
      await (await open(wanted.out, 'wx')).close();
    } catch (error) {
      throw cannotWrite(wanted.out, error);
    }
    return new DemonstrationFile(wanted);
  }

  /**
   * Adds the episodes of a task, none if it was left out.
   * @param i The position of the task, from 0
   * @throws RunError. The file then ends after an earlier task
   */
  add(i: number, episodes: readonly Episode[]): void {
    this.#waiting.set(i, episodes);
    for (; this.#waiting.has(this.#next); this.#next++) this.#write(this.#next);
  }

  /**
   * Writes the tasks that waited for one that was not played.
   * @throws RunError
   */
  finish(): void {
    for (const i of [...this.#waiting.keys()].sort((a, b) => a - b)) this.#write(i);
  }

  /** Ends the writing. An empty file is removed. */
  async close(): Promise<void> {
    const { out } = this.#wanted;
    if (this.demonstrations > 0) await nodeFiles.flush(out);
    else if ((await nodeFiles.size(out)) === 0) await nodeFiles.remove(out); // another program may have written into it
  }

  #write(i: number): void {
    const { out, agents, minScore } = this.#wanted;
    const kept = (this.#waiting.get(i) ?? []).filter((episode) => reaches(episode, minScore));
    const rows = kept.flatMap((episode) => demonstrationsIn(episode, agents));
    const lines = rows.map((row) => `${exactJson(row)}\n`).join('');
    try {
      if (lines !== '') nodeFiles.append(out, lines, this.#bytes);
    } catch (error) {
      throw cannotWrite(out, error);
    }
    this.#waiting.delete(i);
    this.#bytes += Buffer.byteLength(lines);
    this.demonstrations += rows.length;
    this.kept += kept.length;
    for (const { agent } of rows) this.agents[agent] = (this.agents[agent] ?? 0) + 1;
  }
}
