/** The messages between the page and the workers that train. */
import type { RunEvent } from '../../../src/base/events.js';
import type { PlayProgress } from '../../../src/base/host.js';
import type { RunSettings } from './repair-recipe.js';
import type { ShownEpisode } from './shown-episode.js';

export type ToTab =
  | { readonly type: 'start'; readonly settings: RunSettings }
  | { readonly type: 'pause' }
  | { readonly type: 'continue' };

export type FromTab =
  | { readonly type: 'event'; readonly event: RunEvent }
  | { readonly type: 'episode'; readonly step: number; readonly episode: ShownEpisode }
  | { readonly type: 'progress'; readonly progress: PlayProgress }
  | { readonly type: 'done' }
  | { readonly type: 'failed'; readonly message: string };
