import { basename, resolve } from 'node:path';
import { jsonObject, messageOf, RunError } from '@drmas/engine/errors';
import type { RunEvent } from '@drmas/engine/events';
import { excerpt } from '@drmas/engine/host';
import { EVENTS, eventFault, RunDirectory, type RunRecord, readAblation } from '../../method/store.js';
import { type ListedAblation, type ListedRun, RunFactsReader } from '../../runs/analysis.js';
import { type FoundRun, findRuns, listedAblation, runState } from '../report/find-runs.js';
import { LogTail } from './log-tail.js';

interface KnownRun {
  readonly record: RunRecord;
  readonly tail: LogTail;
  readonly facts: RunFactsReader;
}

/**
 * The runs of a folder, with their entries in a list. A refresh reads only the lines that were added since the last
 * one, and keeps only the facts of a run in memory.
 */
export class RunCatalog {
  #folder: string | undefined;
  #found: ReadonlyMap<string, FoundRun> = new Map();
  #ablations: ReadonlyMap<string, string> = new Map();
  readonly #known = new Map<string, KnownRun>();
  readonly #reading = new Map<string, Promise<ListedRun>>();
  #refreshing: Promise<readonly ListedRun[]> | undefined;

  /** @param folder Undefined: there are no runs until `show` names the folder */
  constructor(folder: string | undefined) {
    this.#folder = folder;
  }

  /** Reads another folder from the next refresh on. */
  show(folder: string): void {
    this.#folder = folder;
  }

  get isAwaiting(): boolean {
    return this.#folder === undefined;
  }

  get title(): string {
    return this.#folder === undefined ? '' : basename(resolve(this.#folder));
  }

  /** The path of a run of the folder. Other paths cannot be requested. */
  pathOf(name: string): string | undefined {
    return this.#found.get(name)?.path;
  }

  /** The path of a run. @throws RunError when the folder has no run of the name */
  placeOf(name: string): string {
    const path = this.pathOf(name);
    if (path === undefined) throw new RunError(`${this.title} has no run ${excerpt(name)}`);
    return path;
  }

  async ablations(): Promise<readonly ListedAblation[]> {
    const listed = [...this.#ablations].map(async ([name, path]) => {
      const record = await readAblation(path).catch(() => undefined); // its runs are listed nevertheless
      const runs = [...this.#known].flatMap(([run, known]) =>
        this.#found.get(run)?.ablation === name ? [{ name: run, record: known.record }] : [],
      );
      return record === undefined ? [] : [listedAblation(name, record, runs)];
    });
    return (await Promise.all(listed)).flat();
  }

  /** Reads the folder again and lists the runs, newest first. Concurrent callers share one read. @throws RunError */
  refresh(): Promise<readonly ListedRun[]> {
    this.#refreshing ??= this.#look().finally(() => {
      this.#refreshing = undefined;
    });
    return this.#refreshing;
  }

  async #look(): Promise<readonly ListedRun[]> {
    const folder = this.#folder;
    if (folder === undefined) return [];
    const { runs, ablations } = await findRuns(folder);
    this.#found = new Map(runs.map((run) => [run.name, run]));
    this.#ablations = ablations;
    for (const name of this.#known.keys()) if (!this.#found.has(name)) this.#known.delete(name);
    const listed: ListedRun[] = [];
    for (const run of runs) listed.push(await this.#listed(run));
    return listed.sort((a, b) => timeOf(b).localeCompare(timeOf(a)) || a.name.localeCompare(b.name));
  }

  /** The present state of one run; undefined if the folder had no such run at the last refresh. */
  async listed(name: string): Promise<ListedRun | undefined> {
    const run = this.#found.get(name);
    return run && this.#listed(run);
  }

  /** Concurrent callers share one read, so that no event counts twice. */
  #listed(run: FoundRun): Promise<ListedRun> {
    const reading = this.#reading.get(run.name) ?? this.#read(run).finally(() => this.#reading.delete(run.name));
    this.#reading.set(run.name, reading);
    return reading;
  }

  async #read({ name, path, ablation: part }: FoundRun): Promise<ListedRun> {
    const ablation = part ?? null;
    try {
      const known = this.#known.get(name) ?? (await open(path));
      this.#known.set(name, known);
      await readOn(known);
      const { facts } = known.facts;
      return { name, ablation, ...facts, state: await runState(path, facts) };
    } catch (error) {
      return { name, ablation, state: 'unreadable', problem: messageOf(error) };
    }
  }
}

/** The sort key of a run. Runs that never started come last. */
const timeOf = (run: ListedRun) => ('started' in run ? (run.started ?? '') : '');

async function open(path: string): Promise<KnownRun> {
  const { record } = await RunDirectory.open(path);
  return { record, tail: new LogTail(`${path}/${EVENTS}`), facts: new RunFactsReader(record.resolved) };
}

async function readOn({ tail, facts }: KnownRun): Promise<void> {
  for (;;) {
    const { rewound, lines, more } = await tail.read();
    if (rewound) facts.reset();
    for (const line of lines) {
      const { event } = lineOf(line);
      if (event !== undefined) facts.add(event);
    }
    if (!more) return;
  }
}

/**
 * The event of a line; its fault if it has none, or one that the page cannot show, as after a damage of the disk or
 * from a later version.
 */
export function lineOf(line: string): { readonly event?: RunEvent; readonly fault?: string } {
  const event = jsonObject(line);
  if (typeof event?.type !== 'string') return { fault: `expected an event as one JSON object, got "${excerpt(line)}"` };
  const fault = eventFault(event);
  return fault === undefined ? { event: event as unknown as RunEvent } : { fault };
}
