/** The data inside a report's page, which needs no server. */
import type { RunEvent } from '../../base/events.js';
import type { FeedMessages } from './feed.js';

/** The id of the element with the data. */
export const EMBEDDED_ID = 'report-data';

/** A run in a report. */
export interface EmbeddedRun extends Omit<FeedMessages['run'], 'name'> {
  readonly events: readonly RunEvent[];
  /** Files with their groups. Each is packed with the report's texts. */
  readonly files: readonly { readonly name: string; readonly size: number; readonly groups: readonly string[] }[];
  /** The number of the run's episodes in the report, and on disk. */
  readonly shown: number;
  readonly kept: number;
}

/** The data of a report. */
export interface EmbeddedReport extends Pick<FeedMessages['list'], 'folder' | 'ablations'> {
  readonly runs: readonly EmbeddedRun[];
  readonly texts: readonly string[];
}
