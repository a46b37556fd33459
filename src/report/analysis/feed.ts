/** What the page of the dashboard is told, by a server or by the report that it is written into. */
import type { RunEvent } from '../../core/events.js';
import type { ComparedRun } from './ablation-summary.js';
import type { RunFacts } from './run-facts.js';

/** How a run stands: how it ended; or, without an end, whether a process writes it still. */
export type RunState = Exclude<RunFacts['state'], 'unfinished'> | 'running' | 'interrupted';

interface Named {
  /** Its name in the folder: `first`, `sweep/drmas-seed-1`. */
  readonly name: string;
  /** The name of the ablation that it belongs to. */
  readonly ablation: string | null;
}

/** A run as a list shows it. */
export interface ReadableRun extends Named, Omit<RunFacts, 'state'> {
  readonly state: RunState;
}

/** A directory that holds no run, or one that is damaged. */
export interface UnreadableRun extends Named {
  readonly state: 'unreadable';
  readonly problem: string;
}

export type ListedRun = ReadableRun | UnreadableRun;

/** The part of recipe.json that a page shows. */
export interface ShownRecord {
  readonly recipe: { readonly source: string; readonly overrides: readonly string[] };
  readonly resolved: Readonly<Record<string, unknown>>;
}

/** A file of episodes: `step-000012`, with its size in bytes. */
export interface EpisodeFile {
  readonly name: string;
  readonly size: number;
}

/** An ablation: its variants, and which run is of which. */
export interface ListedAblation {
  readonly name: string;
  readonly variants: readonly string[];
  /** The variant that the others are compared with. */
  readonly baseline: string;
  /** Named parts of the reward between which the variants are drawn. */
  readonly parts?: readonly string[];
  readonly runs: readonly ComparedRun[];
}

/** What the page is told, one message after another. */
export interface FeedMessages {
  readonly list: {
    readonly folder: string;
    readonly ablations: readonly ListedAblation[];
    readonly runs: readonly ListedRun[];
  };
  /** A run as it is listed; it comes before the run's first events. */
  readonly run: { readonly name: string; readonly listed: ListedRun; readonly record: ShownRecord | null };
  /** Events that came after those before; `reset` says that those before are void, `more` that some follow at once. */
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
