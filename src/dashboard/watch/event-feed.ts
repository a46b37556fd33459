import { stat } from 'node:fs/promises';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import type { RunEvent } from '@drmas/engine/events';
import { nodeFiles } from '@drmas/engine/platform';
import { changedRecords, EPISODES, EVENTS, RunDirectory } from '../../method/store.js';
import type { EpisodeFile, FeedMessage, ListedRun } from '../../runs/analysis.js';
import { changeEvents } from '../report/run-data.js';
import { LogTail } from './log-tail.js';
import { lineOf, type RunCatalog } from './run-catalog.js';

/** Milliseconds between two reads of the files of a run, also while it is being prepared, and of a folder of runs. */
const RUN_MS = 500;
const FOLDER_MS = 1500;

/** Yields the list of a folder's runs, and yields it again after each change, until the signal fires. */
export async function* followFolder(catalog: RunCatalog, signal: AbortSignal): AsyncGenerator<FeedMessage> {
  let before = '';
  while (!signal.aborted) {
    const runs = await catalog.refresh();
    const data = { folder: catalog.title, ablations: await catalog.ablations(), runs, preparing: catalog.isAwaiting };
    const now = JSON.stringify(data);
    if (now !== before) yield { type: 'list', data };
    before = now;
    await pause(catalog.isAwaiting ? RUN_MS : FOLDER_MS, signal);
  }
}

/** Yields the data of some runs, and later additions to them, until the signal fires. */
export async function* followRuns(
  catalog: RunCatalog,
  names: readonly string[],
  signal: AbortSignal,
): AsyncGenerator<FeedMessage> {
  const followed = new Map<string, FollowedRun>();
  await catalog.refresh();
  while (!signal.aborted) {
    for (const name of names) {
      const path = catalog.pathOf(name);
      const run = await catalog.listed(name);
      if (path === undefined || run === undefined) continue;
      const state = followed.get(name) ?? new FollowedRun(name, path);
      followed.set(name, state);
      yield* state.news(run);
    }
    await pause(RUN_MS, signal);
  }
}

class FollowedRun {
  readonly #name: string;
  readonly #path: string;
  readonly #tail: LogTail;
  #listed = '';
  #files = '';
  #reset = true;
  /** The lines that were read, and whether the page was told of the first one that has no event. */
  #lines = 0;
  #told = false;
  #warnings: readonly RunEvent[] = [];

  constructor(name: string, path: string) {
    this.#name = name;
    this.#path = path;
    this.#tail = new LogTail(join(path, EVENTS));
    // The run is compared once, while the page already shows it. What cannot be read is said when it is read.
    void changedRecords(path)
      .then((changed) => {
        this.#warnings = changeEvents(changed);
      })
      .catch(() => {});
  }

  async *news(listed: ListedRun): AsyncGenerator<FeedMessage> {
    const name = this.#name;
    const now = JSON.stringify(listed);
    if (now !== this.#listed) {
      const record = await RunDirectory.open(this.#path).then(
        (run) => run.record,
        () => null,
      );
      yield { type: 'run', data: { name, listed, record } };
    }
    this.#listed = now;
    yield* this.#events();
    const [events, reset, more] = [this.#warnings, false, false];
    if (events.length > 0) yield { type: 'events', data: { name, reset, more, events } };
    this.#warnings = [];
    const files = await episodeFiles(this.#path);
    const all = JSON.stringify(files);
    if (all !== this.#files) yield { type: 'files', data: { name, files } };
    this.#files = all;
  }

  async *#events(): AsyncGenerator<FeedMessage> {
    for (let first = this.#reset; ; first = false) {
      const { rewound, lines, more } = await this.#tail.read();
      if (rewound) [this.#lines, this.#told] = [0, false];
      const events = lines.flatMap((line) => this.#eventsOf(line));
      const reset = this.#reset || rewound;
      // An empty log is reported once too: the page then knows that there are no events yet.
      if (events.length > 0 || rewound || (first && !more))
        yield { type: 'events', data: { name: this.#name, reset, more, events } };
      if (events.length > 0 || (first && !more)) this.#reset = false;
      if (!more) return;
    }
  }

  /** The event of a line; a warning about the first line without one. */
  #eventsOf(line: string): readonly RunEvent[] {
    const { event, fault } = lineOf(line);
    this.#lines++;
    if (event !== undefined) return [event];
    if (this.#told) return [];
    this.#told = true;
    const message = `${EVENTS}:${this.#lines}: ${fault}; this page leaves out such lines`;
    return [{ type: 'warning', code: 'lines.unread', message, time: new Date().toISOString(), version: 1 }];
  }
}

/** The files of episodes of a run, in the order of their names. */
async function episodeFiles(path: string): Promise<EpisodeFile[]> {
  const directory = join(path, EPISODES);
  const names = (await nodeFiles.list(directory)).filter((name) => name.endsWith('.jsonl') && !name.startsWith('.'));
  const files: EpisodeFile[] = [];
  for (const name of names) {
    const size = await stat(join(directory, name)).then(
      (state) => state.size,
      () => undefined,
    );
    if (size !== undefined) files.push({ name: name.replace(/\.jsonl$/, ''), size });
  }
  return files;
}

/** Waits; ends early, without an error, when the signal fires. */
const pause = (ms: number, signal: AbortSignal) => sleep(ms, undefined, { signal }).catch(() => {});
