import type { FeedMessage, FeedMessages } from '../../../src/report/analysis/feed.js';
import type { Source } from './source.js';

const TYPES: readonly (keyof FeedMessages)[] = ['list', 'run', 'events', 'files', 'failed'];

/** The server that served the page. A stream that breaks is opened again by the browser and begins anew. */
export const liveSource: Source = {
  live: true,
  follow(names, onMessage, onLink) {
    const query = names.map((name) => `run=${encodeURIComponent(name)}`).join('&');
    const stream = new EventSource(query === '' ? 'api/stream' : `api/stream?${query}`);
    for (const type of TYPES)
      stream.addEventListener(type, ({ data }: MessageEvent<string>) => {
        onMessage({ type, data: JSON.parse(data) } as FeedMessage);
      });
    stream.addEventListener('open', () => onLink(true));
    stream.addEventListener('error', () => onLink(false));
    return () => stream.close();
  },
};
