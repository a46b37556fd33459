/** What a report's page carries in place of a server. */
import type { RunEvent } from '../../core/events.js';
import type { FeedMessages } from './feed.js';

/** The id of the element that holds it. */
export const EMBEDDED_ID = 'report-data';

/** A run as a report carries it. */
export interface EmbeddedRun extends Omit<FeedMessages['run'], 'name'> {
  readonly events: readonly RunEvent[];
  /** Files with their groups, each of them packed with the report's texts. */
  readonly files: readonly { readonly name: string; readonly size: number; readonly groups: readonly string[] }[];
  /** How many of the run's episodes are here, and how many lie on disk. */
  readonly shown: number;
  readonly kept: number;
}

/** The data of a report. */
export interface EmbeddedReport extends Pick<FeedMessages['list'], 'folder' | 'ablations'> {
  readonly runs: readonly EmbeddedRun[];
  readonly texts: readonly string[];
}
