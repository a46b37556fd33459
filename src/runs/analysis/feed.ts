/** The messages to the dashboard's page, from a server or from the report that contains the page. */
import type { RunEvent } from '@drmas/engine/events';
import type { ComparedRun } from './ablation-summary.js';
import type { RunFacts } from './run-facts.js';

/** The state of a run: how it ended, or, if it has not ended, whether a process is writing it. */
export type RunState = Exclude<RunFacts['state'], 'unfinished'> | 'running' | 'interrupted';

interface NamedRun {
  /** Its name in the folder: `first`, `sweep/drmas-seed-1`. */
  readonly name: string;
  readonly ablation: string | null;
}

export interface ReadableRun extends NamedRun, Omit<RunFacts, 'state'> {
  readonly state: RunState;
}

/** A directory without a run, or with a damaged one. */
export interface UnreadableRun extends NamedRun {
  readonly state: 'unreadable';
  readonly problem: string;
}

export type ListedRun = ReadableRun | UnreadableRun;

export interface ShownRecord {
  readonly recipe: { readonly source: string; readonly overrides: readonly string[] };
  readonly resolved: Readonly<Record<string, unknown>>;
}

/** A file of episodes: `step-000012`, with its size in bytes. */
export interface EpisodeFile {
  readonly name: string;
  readonly size: number;
}

export interface ListedAblation {
  readonly name: string;
  readonly variants: readonly string[];
  readonly baseline: string;
  /** The named parts of the reward that are the axes of the plot of variants. */
  readonly parts?: readonly string[];
  readonly runs: readonly ComparedRun[];
}

export interface FeedMessages {
  readonly list: {
    readonly folder: string;
    readonly ablations: readonly ListedAblation[];
    readonly runs: readonly ListedRun[];
    /** Whether a run is being prepared that has no files yet. Absent in reports. */
    readonly preparing?: boolean;
  };
  /** A run in the list. It comes before the run's first events. */
  readonly run: { readonly name: string; readonly listed: ListedRun; readonly record: ShownRecord | null };
  /** Further events of a run. `reset`: the earlier events are void. `more`: further events follow at once. */
  readonly events: {
    readonly name: string;
    readonly reset: boolean;
    readonly more: boolean;
    readonly events: readonly RunEvent[];
  };
  readonly files: { readonly name: string; readonly files: readonly EpisodeFile[] };
  /** The files cannot be read any more. */
  readonly failed: { readonly message: string };
}

export type FeedMessage = {
  readonly [Type in keyof FeedMessages]: { readonly type: Type; readonly data: FeedMessages[Type] };
}[keyof FeedMessages];
